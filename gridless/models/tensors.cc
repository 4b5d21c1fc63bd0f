#include "gridless/models/tensors.h"

#include <algorithm>

#include "gridless/blocks/activations.h"
#include "gridless/weights/dequantise.h"

namespace gridless::models {

using weights::Format;
using weights::TensorView;

Result<void> check_shape(const weights::Checkpoint& c, const std::string& name,
                         std::vector<int64_t> shape) {
  TRY(const TensorView* t, c.require(name));
  if (t->shape != shape) {
    return input_error("tensor {} has the shape {}, the config asks for {}", name,
                       weights::shape_text(t->shape), weights::shape_text(shape));
  }
  return weights::check_readable(*t);
}

Format native_format(const TensorView& t) {
  switch (t.dtype) {
    case weights::Dtype::kQ8_0:
      return Format::kQ8;
    case weights::Dtype::kQ4_0:
      return Format::kQ4;
    case weights::Dtype::kQ4_1:
      return Format::kQ4m;
    default:
      return Format::kBf16;
  }
}

Result<void> fill_rows(const weights::Checkpoint& c, const std::string& name, int64_t rows,
                       std::span<float> out, float added) {
  TRY(const TensorView* t, c.require(name));
  const int64_t width = t->row_elements(), padded = blocks::round_to_lanes(width);
  std::ranges::fill(out, 0.0f);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = out.data() + r * padded;
    TRY_VOID(weights::dequantise_row(*t, r, row));
    for (int64_t i = 0; i < width; ++i) row[i] += added;
  }
  return {};
}

}  // namespace gridless::models
