// The Llama decode step: one kernel that takes R tokens to R rows of logits.
#pragma once

#include <expected>

#include "gridless/ir/call.h"
#include "gridless/models/head_sharding.h"
#include "gridless/models/llama/config.h"
#include "gridless/models/step_shape.h"

namespace gridless::models {

// How the model is spread over cores.
struct LlamaSharding {
  int cores = 1;
  HeadSharding attention;
  int64_t ffn = 0;    // inner width of one core, a multiple of 32
  int64_t vocab = 0;  // logits of one core
};
// An error when the cores do not divide the vocabulary.
Result<LlamaSharding> shard_llama(const LlamaConfig& config, int cores);

weights::StreamLayout llama_stream(const LlamaConfig& config, const LlamaSharding& sharding,
                                   const StepShape& step);

// Operands: rows, pages, keep, embedding, norms, frequencies, weights, kv; results: kv (in place),
// candidate_logits, candidate_ids, logits. Shapes: docs/launch_contract.md.
std::expected<ir::Program, Diagnostics> llama_step(const LlamaConfig& config,
                                                   const LlamaSharding& sharding,
                                                   const StepShape& step,
                                                   const weights::StreamLayout& stream);

}  // namespace gridless::models
