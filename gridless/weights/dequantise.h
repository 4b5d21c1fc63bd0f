// One row of a tensor as floats: the meaning of every readable type, used by everything that
// converts (the packer, tests, inspect). Speed does not matter here; hand kernels have their own
// readers.
#pragma once

#include "gridless/weights/tensor.h"

namespace gridless::weights {

// Writes view.row_elements() floats of row `r` (Hugging Face order, see TensorView::rotary_heads)
// to `out`. Exact for every float type up to 32 bits and for the integers that a float holds; f64
// and large integers round once to nearest even. Block formats are evaluated in float32 as ggml
// does: scale * code for Q4_0, Q5_0, Q8_0; scale * code + minimum for Q4_1, Q5_1 (product and sum
// rounded each, no fused multiply-add); the K types in the order of their reference decoder. An
// error naming tensor and type where the type is not readable (info(dtype).readable).
Result<void> dequantise_row(const TensorView& view, int64_t r, float* out);

// The same for `elements` elements at `bytes`, a whole number of blocks of a readable type.
void dequantise(Dtype dtype, const uint8_t* bytes, int64_t elements, float* out);

// The error for a tensor whose type is not readable; success otherwise.
Result<void> check_readable(const TensorView& view);

}  // namespace gridless::weights
