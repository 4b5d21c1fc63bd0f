// The product of activations with one chunk of the weight stream (composites dot_bf16, dot_q8,
// dot_q4, dot_q4m, dot_mxfp4; docs/weight_stream.md states the arithmetic to the bit).
#pragma once

#include "gridless/blocks/activations.h"
#include "gridless/weights/stream_layout.h"

namespace gridless::blocks {

// y[p] (+)= x[:, part * kp ..] times panel p of the chunk in `tile`. x: bf16 panel-major; tile: u32
// [chunk_rows, 128]; y: f32 [panels_per_chunk, R, 128]; part 0 starts from zero, later parts
// accumulate.
void dot_chunk(const weights::MatrixLayout& m, int64_t part, Ref x, Ref tile, Ref y);

}  // namespace gridless::blocks
