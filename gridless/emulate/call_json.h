// call.json: how a bare Mosaic body is called, which the body itself does not say:
//   {"operands": [{"shape": [8, 128], "dtype": "f32", "color": 0}, ...], "results": [...],
//    "aliases": [{"output": [k], "operand": i}, ...], "device_count": n}
// as JAX's tpu_custom_call has it. "output" is [] for an only result; "color" (0 HBM, 1 VMEM, 4 SMEM)
// may be absent. Other keys are ignored.
#pragma once

#include <string>

#include "gridless/base/error.h"
#include "gridless/ir/call.h"

namespace gridless::emulate {

// The contents of a call.json. Errors name the key that is missing or wrong.
Result<ir::Call> parse_call(const std::string& json);

}  // namespace gridless::emulate
