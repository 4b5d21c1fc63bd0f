// PJRT_Buffer_Type: how the C API numbers element types.
#pragma once

#include <string_view>

#include "gridless/base/error.h"

namespace gridless::tpu {

// From the MLIR name (f32, bf16, i32, ui32, f8E4M3FN, ...). Unsigned and signless integers are
// different types there; MLIR's signless `i32` is XLA's signed one.
Result<int> element_type(std::string_view dtype);

}  // namespace gridless::tpu
