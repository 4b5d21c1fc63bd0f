// The decode step of Kimi K3: one kernel that takes R tokens to R rows of logits, over recurrent
// state and a cache of latents.
#pragma once

#include <expected>

#include "gridless/blocks/experts.h"
#include "gridless/blocks/gated_delta.h"
#include "gridless/blocks/latent_attention.h"
#include "gridless/ir/call.h"
#include "gridless/models/kimi_k3/config.h"
#include "gridless/models/step_shape.h"

namespace gridless::models {

// How the model is spread over cores. Heads are divided; the inner channels of dense MLPs and of
// shared experts too. The cores form `groups` groups of equal size (expert parallel): a group holds
// an equal run of the experts, and each of its cores the same share of the inner channels of all of
// these (tensor parallel). Projections that no head or channel divides go by whole panels of 128
// outputs (or, `up`, inputs), so that no core shifts lanes; cores beyond the last panel hold zeros.
struct KimiK3Sharding {
  int cores = 1;
  blocks::DeltaShape delta;                      // of one core
  blocks::LatentShape latent;                    // of one core
  int64_t ffn = 0, shared_inner = 0, vocab = 0;  // of one core
  int groups = 1;
  int64_t experts = 0;  // of one group
  blocks::ExpertLayout expert;
  // Panels of one core: of what latent attention makes queries and latents from, of the router with
  // the experts' input, and of the inputs of what takes the experts' sum up again.
  int64_t down_panels = 0, router_panels = 0, up_panels = 0;

  int group_size() const { return cores / groups; }
};
// Errors: what does not divide; experts in MXFP4 whose blocks of 32 a share would cut.
Result<KimiK3Sharding> shard_kimi_k3(const KimiK3Config& config, int cores, const StepShape& step);

// Whole panels of the parts of those projections.
struct KimiK3Panels {
  int64_t query, latent, extra;  // of latent attention's first projection, in this order
  int64_t moe_latent, experts;   // of the router's, in this order
};
KimiK3Panels panels_of(const KimiK3Config& config);

// The weight stream: one "layer" with the matrices of all layers; matrix `name` of layer l is
// "l.name".
weights::StreamLayout kimi_k3_stream(const KimiK3Config& config, const KimiK3Sharding& sharding,
                                     const StepShape& step);

// Operands: docs/kimi_k3.md.
std::expected<ir::Program, Diagnostics> kimi_k3_step(const KimiK3Config& config,
                                                     const KimiK3Sharding& sharding,
                                                     const StepShape& step,
                                                     const weights::StreamLayout& stream);

}  // namespace gridless::models
