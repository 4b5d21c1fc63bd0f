// A kernel out of the program around it: StableHLO text with one tpu_custom_call, as
// jax.jit(f).trace(..).lower(lowering_platforms=("tpu",)).as_text() prints it.
//
// Only the custom call is read, and how many devices the program is for. docs/reading_kernels.md
// tells users how to make such a text.
#pragma once

#include <expected>
#include <string_view>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"
#include "gridless/ir/call.h"

namespace gridless::ir {

// Whether the text is a StableHLO program and not the body of a kernel.
bool is_stablehlo(std::string_view text);

// The number of devices that a StableHLO program asks for; 1 when it does not say.
Result<int> program_cores(std::string_view stablehlo);

// The body (bytecode or text, in base64), shapes, aliases, memories and options of the call. Ops
// have the places in the user's source that JAX kept beside the body; operands are named in0,
// in1, ..., results out0, out1, ...
std::expected<Program, Diagnostics> read_jax_program(std::string_view text, std::string_view file);

}  // namespace gridless::ir
