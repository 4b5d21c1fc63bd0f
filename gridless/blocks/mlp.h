// SwiGLU (Shazeer, 2020): silu(gate) * up.
#pragma once

#include "gridless/blocks/activations.h"

namespace gridless::blocks {

// y: f32 [P, R, 128], P/2 panels of the gate projection, then P/2 of the up projection for the same
// outputs; out: bf16 [P/2, R, 128], rounded once.
void swiglu(Ref y, Ref out);

}  // namespace gridless::blocks
