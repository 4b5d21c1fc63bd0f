#include "gridless/base/integers.h"
#include "gridless/models/llama/step.h"

namespace gridless::models {

Result<LlamaSharding> shard_llama(const LlamaConfig& config, int cores) {
  if (cores < 1 || cores > 128) return input_error("{} cores: use 1 to 128", cores);
  if (config.vocab % cores != 0) {
    return input_error("a vocabulary of {} does not divide among {} cores", config.vocab, cores);
  }
  LlamaSharding s;
  s.cores = cores;
  s.attention = shard_heads(config.kv_heads, config.group(), config.head_dim, cores);
  s.ffn = round_up(ceil_div(config.ffn, cores), 32);
  s.vocab = config.vocab / cores;
  return s;
}

weights::StreamLayout llama_stream(const LlamaConfig& config, const LlamaSharding& s,
                                   const StepShape& step) {
  const blocks::HeadShape& h = s.attention.shape;
  const int64_t hidden = round_up(config.hidden, 32);
  // The inputs of `o` are whole heads in another order than the file's. Heads that are not whole
  // blocks would cut its blocks of 32, so then this one matrix runs as bf16.
  const weights::Format o =
      config.head_dim % 32 == 0 ? step.formats.layers : weights::Format::kBf16;
  return weights::make_stream_layout(
      config.layers,
      {{"qkv", (h.groups + 2) * h.width(), hidden, step.formats.layers},
       {"o", config.hidden, round_up(h.groups * h.width(), 32), o},
       {"gate_up", s.ffn, hidden, step.formats.layers, /*paired=*/true},
       {"down", config.hidden, s.ffn, step.formats.layers}},
      {{"head", s.vocab, hidden, step.formats.head}}, step.max_chunk_bytes);
}

}  // namespace gridless::models
