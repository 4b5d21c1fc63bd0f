// The decode step of the dense Qwen3.5/3.6/3.8 models: one kernel that takes R tokens to R rows of
// logits, over recurrent state and a key/value cache.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "gridless/blocks/gated_delta.h"
#include "gridless/ir/call.h"
#include "gridless/models/head_sharding.h"
#include "gridless/models/qwen3_8/config.h"
#include "gridless/models/step_shape.h"

namespace gridless::models {

// How the model is spread over cores: heads of full attention as everywhere (head_sharding.h); a
// core has whole key heads of linear attention with their value heads or, beyond as many cores as
// key heads, one key head and a part of its value heads.
struct Qwen38Sharding {
  int cores = 1;
  HeadSharding attention;
  blocks::DeltaShape delta;  // of one core
  int64_t ffn = 0;           // inner width of one core, a multiple of 32
  int64_t vocab = 0;         // logits of one core
};
// An error when the cores do not divide the vocabulary or the heads of linear attention.
Result<Qwen38Sharding> shard_qwen38(const Qwen38Config& config, int cores);

// Equal layers that follow each other within a period of the pattern.
struct LayerRun {
  bool full = false;  // attention; else Gated DeltaNet
  int64_t first = 0;  // layer of the period
  int64_t count = 0;
  int64_t before = 0;  // layers of its kind before it in the period
};
std::vector<LayerRun> layer_runs(const Qwen38Config& config);

// The weight stream: its "layers" are periods of the pattern. Matrix `name` of layer l of a period
// is "l.name".
weights::StreamLayout qwen38_stream(const Qwen38Config& config, const Qwen38Sharding& sharding,
                                    const StepShape& step);

// Operands: docs/launch_contract.md, "Models with recurrent state".
std::expected<ir::Program, Diagnostics> qwen38_step(const Qwen38Config& config,
                                                    const Qwen38Sharding& sharding,
                                                    const StepShape& step,
                                                    const weights::StreamLayout& stream);

}  // namespace gridless::models
