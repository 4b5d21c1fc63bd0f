// RMS norm (Zhang and Sennrich, 2019): x / sqrt(mean(x^2) + eps) * w.
#pragma once

#include "gridless/blocks/activations.h"

namespace gridless::blocks {

// x: f32 panel-major [n, R, 128]; w: f32 [n, 128]; out: bf16 [n, R, 128], rounded once at the end.
// The mean divides by the true `width`; lanes beyond it are zero in x and w.
void rms_norm(Ref x, Ref w, Ref out, int64_t width, double eps);

}  // namespace gridless::blocks
