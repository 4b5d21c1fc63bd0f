// Binding of composites to hand kernels: from the refs of a composite op to the raw arguments of
// the kernel of that name (docs/composites.md, cpu/kernels.h).
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "gridless/cpu/kernels.h"
#include "gridless/emulate/view.h"
#include "gridless/ir/module.h"

namespace gridless::cpu {

// An operand of a composite when its kernel is called: a ref, or an integer scalar.
struct BoundOperand {
  emulate::View view;
  int64_t integer = 0;
};

using KernelCall = std::function<void()>;

// True when the name has a hand kernel.
bool has_hand_kernel(std::string_view composite);

// The call, with all arguments resolved; nothing when a ref is not contiguous (the body runs then).
std::optional<KernelCall> bind_kernel(const ir::Op& op, std::span<const BoundOperand> operands,
                                      const KernelTable& kernels);

}  // namespace gridless::cpu
