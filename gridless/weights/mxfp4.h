// MXFP4 as compressed-tensors stores it (format mxfp4-pack-quantized): `codes`, U8 [out, in / 2],
// two E2M1 codes per byte along the inputs, the low nibble first, and `scales`, U8 [out, in / 32],
// the E8M0 scale of 32 inputs each: 2^(byte - 127).
#pragma once

#include "gridless/weights/tensor.h"

namespace gridless::weights {

inline constexpr int64_t kMxfp4Block = 32;

// An error where types or shapes of the two do not belong together. Scales of 0 and 255 (the
// smallest power, and NaN) are found when rows are read.
Result<void> check_mxfp4(const TensorView& codes, const TensorView& scales);

// One block of a row: its 32 codes, in input order, and its scale byte.
struct Mxfp4Block {
  uint8_t codes[kMxfp4Block];
  uint8_t scale;
};
Result<Mxfp4Block> read_mxfp4_block(const TensorView& codes, const TensorView& scales, int64_t row,
                                    int64_t block);

// A whole row as floats, exactly.
Result<void> dequantise_mxfp4_row(const TensorView& codes, const TensorView& scales, int64_t row,
                                  float* out);

}  // namespace gridless::weights
