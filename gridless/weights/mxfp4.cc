#include "gridless/weights/mxfp4.h"

#include "gridless/base/float8.h"
#include "gridless/base/numerics.h"

namespace gridless::weights {

Result<void> check_mxfp4(const TensorView& codes, const TensorView& scales) {
  for (const TensorView* t : {&codes, &scales}) {
    if (t->dtype == Dtype::kU8 && t->shape.size() == 2) continue;
    return input_error("tensor {} is {} {}: MXFP4 is stored as U8 with two dimensions", t->name,
                       name(t->dtype), shape_text(t->shape));
  }
  if (codes.shape[0] == scales.shape[0] && codes.shape[1] * 2 == scales.shape[1] * kMxfp4Block) {
    return {};
  }
  return input_error("tensors {} {} and {} {} do not belong together: one scale per 16 bytes",
                     codes.name, shape_text(codes.shape), scales.name, shape_text(scales.shape));
}

Result<Mxfp4Block> read_mxfp4_block(const TensorView& codes, const TensorView& scales, int64_t row,
                                    int64_t block) {
  Mxfp4Block out;
  out.scale = scales.row(row).data()[block];
  if (out.scale == 0 || out.scale == 255) {
    return input_error("tensor {}: scale {} of row {} is {}, which no weight has", scales.name,
                       block, row, int{out.scale});
  }
  const uint8_t* bytes = codes.row(row).data() + block * kMxfp4Block / 2;
  for (int64_t i = 0; i < kMxfp4Block / 2; ++i) {
    out.codes[2 * i] = bytes[i] & 15;
    out.codes[2 * i + 1] = bytes[i] >> 4;
  }
  return out;
}

Result<void> dequantise_mxfp4_row(const TensorView& codes, const TensorView& scales, int64_t row,
                                  float* out) {
  for (int64_t b = 0; b < scales.row_elements(); ++b) {
    TRY(const Mxfp4Block block, read_mxfp4_block(codes, scales, row, b));
    const float scale = to_f32(f8e8m0{block.scale});
    for (const uint8_t code : block.codes) *out++ = scale * to_f32(f4e2m1{code});
  }
  return {};
}

}  // namespace gridless::weights
