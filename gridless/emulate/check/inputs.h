// Operands for a run under the checker: the caller's, or made-up ones.
#pragma once

#include <span>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/emulate/emulator.h"

namespace gridless::emulate {

struct CheckInputs {
  std::vector<std::span<const std::byte>> operands;  // the bytes of all cores one after another
  std::vector<bool> not_given;
  std::vector<std::vector<std::byte>> made_up;
};
// `make_up`: what is not given gets made-up values; else it stays empty.
Result<CheckInputs> complete_inputs(const ir::Call& call, int cores,
                                    std::span<const std::span<const std::byte>> given,
                                    bool make_up);

}  // namespace gridless::emulate
