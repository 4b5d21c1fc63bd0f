// What a checkpoint holds, counted: for `inspect` and for messages.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gridless/weights/tensor.h"

namespace gridless::weights {

// All tensors of one element type.
struct FormatUse {
  Dtype dtype = Dtype::kF32;
  int64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

// All tensors whose names differ in numbers only ("model.layers.*.mlp.up_proj.weight") and which
// agree in type and shape.
struct TensorKind {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;
  int64_t tensors = 0;
  uint64_t bytes = 0;
};

struct Summary {
  uint64_t elements = 0;
  uint64_t bytes = 0;
  std::vector<FormatUse> formats;  // most bytes first
  std::vector<TensorKind> kinds;   // in the order of the names
};

Summary summarise(std::span<const TensorView> tensors);

// "model.layers.12.mlp.up_proj.weight" -> "model.layers.*.mlp.up_proj.weight"
std::string without_numbers(std::string_view name);

}  // namespace gridless::weights
