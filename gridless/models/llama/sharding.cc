#include <algorithm>

#include "gridless/models/llama/step.h"

namespace gridless::models {

namespace {
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
}  // namespace

Result<LlamaSharding> shard_llama(const LlamaConfig& config, int cores) {
  if (cores < 1 || cores > 128) return input_error("{} cores: use 1 to 128", cores);
  if (config.vocab % cores != 0) {
    return input_error("a vocabulary of {} does not divide among {} cores", config.vocab, cores);
  }
  LlamaSharding s;
  s.cores = cores;
  s.kv_heads_total = config.kv_heads;
  s.group_total = config.group();
  s.heads.head_dim = config.head_dim;
  if (cores <= config.kv_heads) {
    s.heads.heads = ceil_div(config.kv_heads, cores);
    s.heads.groups = config.group();
  } else {
    // The least divisor of the core count that holds all heads; the cores of one head share its
    // queries.
    int64_t holders = config.kv_heads;
    while (cores % holders != 0) ++holders;
    s.cores_per_kv = cores / holders;
    s.heads.heads = 1;
    s.heads.groups = ceil_div(config.group(), s.cores_per_kv);
  }
  s.ffn = round_up(ceil_div(config.ffn, cores), 32);
  s.vocab = config.vocab / cores;
  return s;
}

LlamaSharding::Heads LlamaSharding::heads_of(int core) const {
  Heads out;
  const int64_t first = cores_per_kv > 1 ? core / cores_per_kv : core * heads.heads;
  const int64_t share = cores_per_kv > 1 ? core % cores_per_kv : 0;
  for (int64_t j = 0; j < heads.heads; ++j) {
    out.kv.push_back(first + j < kv_heads_total ? first + j : -1);
  }
  for (int64_t g = 0; g < heads.groups; ++g) {
    const int64_t member = share * heads.groups + g;
    std::vector<int64_t> row;
    for (int64_t kv : out.kv) {
      row.push_back(kv >= 0 && member < group_total ? kv * group_total + member : -1);
    }
    out.q.push_back(std::move(row));
  }
  return out;
}

weights::StreamLayout llama_stream(const LlamaConfig& config, const LlamaSharding& s,
                                   const StepShape& step) {
  const blocks::HeadShape& h = s.heads;
  const int64_t hidden = round_up(config.hidden, 32);
  // The inputs of `o` are whole heads in another order than the file's. Heads that are not whole
  // blocks would cut its blocks of 32, so then this one matrix runs as bf16.
  const weights::Format o = config.head_dim % 32 == 0 ? step.format : weights::Format::kBf16;
  return weights::make_stream_layout(config.layers,
                                     {{"qkv", (h.groups + 2) * h.width(), hidden, step.format},
                                      {"o", config.hidden, round_up(h.groups * h.width(), 32), o},
                                      {"gate_up", s.ffn, hidden, step.format, /*paired=*/true},
                                      {"down", config.hidden, s.ffn, step.format}},
                                     {{"head", s.vocab, hidden, step.head_format}},
                                     step.max_chunk_bytes);
}

}  // namespace gridless::models
