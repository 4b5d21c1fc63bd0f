// What gated attention (Qwen3-Next and its successors) adds to grouped-query attention: RMS norms
// of every query and key head before RoPE, and a sigmoid gate on the output. RoPE may turn a part
// of the dimensions only: lanes of frequency 0 stay as they are.
#pragma once

#include "gridless/blocks/attention.h"

namespace gridless::blocks {

// As qkv_rope, each head of the queries and the key normed first: v / sqrt(mean(v^2) + eps) * w.
// norms: f32 [2, 2, padded_half]: for queries and for the key, the weights of the first and of the
// second half of the half-split lanes.
void qkv_norm_rope(Ref y, Ref norms, const RopeTable& rope, const HeadShape& h, double eps,
                   Ref qkv);

// context = bf16(context * sigmoid(gate)); context bf16, gate f32, both panel-major.
void gate_context(Ref context, Ref gate);

}  // namespace gridless::blocks
