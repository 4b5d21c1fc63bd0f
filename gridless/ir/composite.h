// Composites: a named group of ops that an engine may run by a kernel of its own.
//
// A composite is a tpu.region with the attribute gridless.composite = "name" (libtpu ignores it).
// Its body is ordinary ops over the refs and scalars around it and has no results: inputs and
// outputs are refs. The emulator, the checker, the time model and TPU emission look inside; the CPU
// engine may own a hand kernel for the name, which must compute what the body computes (to the bit,
// or to the tolerance that the contract states).
//
// Operands: the values defined outside and used inside, in the order of the contract. A tpu.region
// has no operands in MLIR, so the attribute gridless.order = array<i64: ...> gives, for each
// operand of the contract, its number among the captured values in the order of their first use in
// the body. Constants are never captured: they are made again inside.
//
// Further attributes gridless.<name> hold the static parameters of the contract. The contracts of
// all composites stand in docs/composites.md; composite_names() lists the names.
#pragma once

#include <string_view>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::ir {

inline constexpr std::string_view kCompositeAttr = "gridless.composite";
inline constexpr std::string_view kOrderAttr = "gridless.order";

// The name of a composite, or empty for any other op.
std::string_view composite_name(const Op& op);

// The values used inside `region_op` and defined outside it, in the order of their first use
// (pre-order walk, operands left to right).
std::vector<Value*> captured_values(const Op& region_op);

// The operands of a composite in the order of its contract.
std::vector<Value*> composite_operands(const Op& op);

// Static parameter gridless.<name> of a composite.
int64_t composite_int(const Op& op, std::string_view name);
double composite_real(const Op& op, std::string_view name);

}  // namespace gridless::ir
