// Gated MLPs: SwiGLU (Shazeer, 2020), silu(gate) * up, and Kimi K3's SiTU.
#pragma once

#include <string>

#include "gridless/blocks/weight_stream.h"

namespace gridless::blocks {

// y: f32 [P, R, 128], P/2 panels of the gate projection, then P/2 of the up projection for the same
// outputs; out: bf16 [P/2, R, 128], rounded once.
void swiglu(Ref y, Ref out);

// beta tanh(gate / beta) * sigmoid(gate) * linear tanh(up / linear), of gate and up rounded to
// bf16.
struct Situ {
  double beta = 4;
  double linear = 25;  // not positive: up as it is
};
Vec situ(Vec gate, Vec up, const Situ& s);
// As swiglu.
void situ(Ref y, const Situ& s, Ref out);

// The product of x (bf16 panel-major) with matrix `gate_up` of the stream, which is paired, gated
// chunk by chunk as gate and up stream by together (`gated` is swiglu or the like), times matrix
// `down`: f32, in the current scope.
Ref gated_mlp(WeightStream& w, const std::string& gate_up, const std::string& down, Ref x,
              const std::function<void(Ref y, Ref out)>& gated = swiglu);

}  // namespace gridless::blocks
