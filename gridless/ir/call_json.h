// call.json: how a kernel is called, for bodies that come without the program around them. Format:
// docs/compile_output.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "gridless/base/error.h"
#include "gridless/ir/call.h"

namespace gridless::ir {

// kernel_name, operands and results with shape, dtype and optional space or color, aliases,
// num_partitions, and the options of the backend config. Operands are named in0, in1, ..., results
// out0, out1, ...
Result<Call> parse_call_json(std::string_view json);

// What the backend_config of a tpu_custom_call says besides the body: communication, limits,
// checks, memories of operands and results (which must be there already). Errors name the place of
// a value of the wrong kind.
Result<void> read_backend_config(const nlohmann::json& config, Call& call);

// 1 to kMostCores cores, sound shapes (positive sizes, at most 2^40 elements), and aliases between
// buffers that are alike, no buffer twice.
Result<void> validate(const Call& call);

}  // namespace gridless::ir
