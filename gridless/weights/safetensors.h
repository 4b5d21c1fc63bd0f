// safetensors: u64 header length, a JSON header, then the data, without gaps.
//
//   {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ..., "__metadata__":
//   {}}
//
// Reading checks all of the header against the file and copies nothing; the views point into
// `bytes`, which must outlive them. Errors name the tensor. Writing puts wide types first, as the
// format's own writer does, so that every tensor starts at a multiple of its element size.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/weights/tensor.h"

namespace gridless::weights {

struct Safetensors {
  std::vector<TensorView> tensors;  // in the order of their data
  std::map<std::string, std::string> metadata;

  static Result<Safetensors> parse(ByteView bytes);
  const TensorView* find(std::string_view name) const;
};

// model.safetensors.index.json of a sharded checkpoint: which file (in the same directory) holds
// each tensor. Shard names are checked to be plain file names. `text` is the whole file.
Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view text);

// One tensor to be written. `bytes` must be as long as dtype and shape say (a CHECK).
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  ByteView bytes;
};

// Replaces the file at `path`. Names must be distinct; the header lists them in the given order.
Result<void> write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace gridless::weights
