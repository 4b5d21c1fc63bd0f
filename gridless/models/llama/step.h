// The Llama decode step: one kernel that takes R tokens to R rows of logits.
#pragma once

#include <vector>

#include "gridless/blocks/attention.h"
#include "gridless/ir/call.h"
#include "gridless/models/llama/config.h"
#include "gridless/weights/stream_layout.h"

namespace gridless::models {

// How the model is spread over cores. Query heads stay with their key/value head; key/value heads
// are padded with zero heads when they do not divide, and repeated when there are more cores than
// heads.
struct LlamaSharding {
  int cores = 1;
  blocks::HeadShape heads;  // of one core
  int64_t ffn = 0;          // inner width of one core, a multiple of 32
  int64_t vocab = 0;        // logits of one core

  // Heads of core c: kv[j], and q[g][j] for each group; -1 is a zero head.
  struct Heads {
    std::vector<int64_t> kv;
    std::vector<std::vector<int64_t>> q;
  };
  Heads heads_of(int core) const;

  int64_t kv_heads_total = 0, group_total = 0;  // of the model
  int64_t cores_per_kv = 1;                     // > 1 when key/value heads are repeated
};
// An error when the cores do not divide the vocabulary.
Result<LlamaSharding> shard_llama(const LlamaConfig& config, int cores);

// Everything about a step program beside the model.
struct StepShape {
  int64_t rows = 1;                                      // R
  int64_t slots = 1;                                     // sequences that may be live
  int64_t pages = 64;                                    // of 128 tokens, in all
  int64_t slot_pages = 64;                               // pages one sequence may use
  int64_t candidates = 8;                                // top-k candidates per row
  weights::Format format = weights::Format::kBf16;       // of the layers' matrices
  weights::Format head_format = weights::Format::kBf16;  // of the LM head
  int64_t max_chunk_bytes = 4 << 20;
  int ring_slots = 4;
};

weights::StreamLayout llama_stream(const LlamaConfig& config, const LlamaSharding& sharding,
                                   const StepShape& step);

// Operands: rows, pages, keep, embedding, norms, frequencies, weights, kv; results: kv (in place),
// candidate_logits, candidate_ids, logits. Shapes: docs/launch_contract.md.
std::expected<ir::Program, Diagnostics> llama_step(const LlamaConfig& config,
                                                   const LlamaSharding& sharding,
                                                   const StepShape& step,
                                                   const weights::StreamLayout& stream);

}  // namespace gridless::models
