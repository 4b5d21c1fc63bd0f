// A light look at a body's text: the kernel function's arguments, without parsing the rest. libtpu
// compares neither shapes nor types with the call ("accepted silently", then wrong on the device),
// so this is checked before every compilation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/tpu/call_spec.h"

namespace gridless::tpu {

struct BodyArgument {
  bool is_memref = false;  // else an iteration index of a grid
  std::vector<int64_t> shape;
  std::string dtype;  // as in OperandSpec, or a semaphore type
  std::string space;  // "any", "hbm", "vmem", "smem", "semaphore_mem", ...; "" when not said
};

// The arguments of the first block of `body` (`^bb0(...)`). Empty when the text has no such block
// or writes types in a way this reader does not know: then nothing is checked.
std::vector<BodyArgument> body_arguments(std::string_view body);

// Compares the call with the body and fills in what only the body says: an operand whose space the
// call leaves open is pinned to HBM if the kernel's argument is an hbm memref. Kernels with a grid
// see blocks of their operands, so only the number of arguments is checked for them.
Diagnostics match_signature(std::string_view body, std::string_view body_file, CallSpec& spec);

}  // namespace gridless::tpu
