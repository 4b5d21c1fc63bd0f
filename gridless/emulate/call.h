// A call of a kernel: the shapes and formats of its operands and results, and which results take over
// an operand's memory. For a bare Mosaic body this stands in a call.json (as JAX's tpu_custom_call has
// it): {"operands": [{"shape": [8, 128], "dtype": "f32"}, ...], "results": [...],
//       "aliases": [{"output": [k], "operand": i}, ...], "device_count": n}.
// "output" is [] for an only result. Keys beyond these are ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/ir/type.h"

namespace gridless::emulate {

struct TensorSpec {
  ir::Elem elem = ir::Elem::kF32;
  ir::Shape shape;
  int64_t num_elements() const;
  int64_t bytes() const;  // row-major, 4-bit formats two per byte, i1 one per byte
};

struct Alias {
  int operand = 0;
  int result = 0;
};

struct Call {
  std::vector<TensorSpec> operands, results;
  std::vector<Alias> aliases;
  int cores = 1;  // the program's device count; an emulator may be run with any number
};

// The contents of a call.json. Errors name the key that is missing or wrong.
Result<Call> parse_call(const std::string& json);

}  // namespace gridless::emulate
