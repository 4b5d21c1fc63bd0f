// SwiGLU (Shazeer, 2020): silu(gate) * up.
#pragma once

#include <string>

#include "gridless/blocks/weight_stream.h"

namespace gridless::blocks {

// y: f32 [P, R, 128], P/2 panels of the gate projection, then P/2 of the up projection for the same
// outputs; out: bf16 [P/2, R, 128], rounded once.
void swiglu(Ref y, Ref out);

// The product of x (bf16 panel-major) with matrix `gate_up` of the stream, which is paired, gated
// chunk by chunk as gate and up stream by together, times matrix `down`: f32, in the current scope.
Ref gated_mlp(WeightStream& w, const std::string& gate_up, const std::string& down, Ref x);

}  // namespace gridless::blocks
