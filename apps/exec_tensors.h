// Operands and results of a kernel <-> tensors of a safetensors file.
//
// Shapes are those of the call; with several cores a leading core axis. Formats that safetensors
// lacks are stored as the corpus stores them: i1 and 4-bit formats one element per int8.
#pragma once

#include <string>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/base/mapped_file.h"
#include "gridless/ir/call.h"

namespace gridless::apps {

// Bytes of all cores one after another, in the kernel's packing.
using CallBytes = std::vector<std::vector<std::byte>>;

// in0, in1, ... (or the operand's own name) of the file, checked against the call. With `some`,
// operands may be missing: they come back empty.
Result<CallBytes> read_operands(const std::string& path, const ir::Call& call, int cores,
                                bool some = false);

struct NamedTensor {
  std::string name, dtype;  // as the file has them
  std::vector<int64_t> shape;
};

// Writes out0, out1, ...; returns what was written.
Result<std::vector<NamedTensor>> write_results(const std::string& path, const ir::Call& call,
                                               int cores, const CallBytes& results);

}  // namespace gridless::apps
