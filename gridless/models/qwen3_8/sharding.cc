#include <fmt/format.h>

#include "gridless/base/integers.h"
#include "gridless/models/qwen3_8/step.h"

namespace gridless::models {

namespace {

Result<blocks::DeltaShape> shard_delta(const Qwen38Config& m, int cores) {
  blocks::DeltaShape d{.key_dim = m.key_dim, .value_dim = m.value_dim, .eps = m.rms_eps};
  const int64_t ratio = m.value_heads / m.key_heads;
  if (m.key_heads % cores == 0) {
    d.key_heads = m.key_heads / cores;
    d.value_heads = d.key_heads * ratio;
  } else if (cores % m.key_heads == 0 && ratio % (cores / m.key_heads) == 0) {
    d.key_heads = 1;
    d.value_heads = ratio / (cores / m.key_heads);
  } else {
    return input_error(
        "{} key heads with {} value heads each, of linear attention, do not divide among {} cores",
        m.key_heads, ratio, cores);
  }
  if (2 * d.value_heads > blocks::kLanes) {
    return input_error("{} value heads of linear attention on one core: at most {} are possible",
                       d.value_heads, blocks::kLanes / 2);
  }
  return d;
}

}  // namespace

Result<Qwen38Sharding> shard_qwen38(const Qwen38Config& config, int cores) {
  if (cores < 1 || cores > 128) return input_error("{} cores: use 1 to 128", cores);
  if (config.vocab % cores != 0) {
    return input_error("a vocabulary of {} does not divide among {} cores", config.vocab, cores);
  }
  Qwen38Sharding s;
  s.cores = cores;
  s.attention = shard_heads(config.kv_heads, config.group(), config.head_dim, cores);
  TRY(s.delta, shard_delta(config, cores));
  s.ffn = round_up(ceil_div(config.ffn, cores), 32);
  s.vocab = config.vocab / cores;
  return s;
}

std::vector<LayerRun> layer_runs(const Qwen38Config& config) {
  std::vector<LayerRun> runs;
  int64_t seen[2] = {};
  for (size_t l = 0; l < config.period.size(); ++l) {
    const bool full = config.period[l];
    if (runs.empty() || runs.back().full != full) {
      runs.push_back({.full = full, .first = static_cast<int64_t>(l), .before = seen[full]});
    }
    ++runs.back().count;
    ++seen[full];
  }
  return runs;
}

weights::StreamLayout qwen38_stream(const Qwen38Config& config, const Qwen38Sharding& s,
                                    const StepShape& step) {
  const blocks::HeadShape& h = s.attention.shape;
  const blocks::DeltaShape& d = s.delta;
  const int64_t hidden = round_up(config.hidden, 32);
  const weights::Format format = step.formats.layers;
  // Inputs in another order than the file's, by heads: heads that are not whole blocks of 32 would
  // cut the file's, so then these matrices run as bf16.
  const auto by_heads = [&](int64_t head_dim) {
    return head_dim % 32 == 0 ? format : weights::Format::kBf16;
  };
  std::vector<weights::MatrixShape> period;
  for (size_t l = 0; l < config.period.size(); ++l) {
    const auto add = [&](const char* name, int64_t n, int64_t k, weights::Format f,
                         bool paired = false) {
      period.push_back({fmt::format("{}.{}", l, name), n, k, f, paired});
    };
    if (config.period[l]) {
      const int64_t queries = h.groups * h.width();
      add("qkv", queries + 2 * h.width(), hidden, format);
      add("gate", queries, hidden, format);
      add("o", config.hidden, round_up(queries, 32), by_heads(config.head_dim));
    } else {
      add("in", d.projection_panels() * blocks::kLanes, hidden, format);
      add("out", config.hidden, round_up(d.value_heads * d.value_dim, 32), by_heads(d.value_dim));
    }
    add("gate_up", s.ffn, hidden, format, /*paired=*/true);
    add("down", config.hidden, s.ffn, format);
  }
  return weights::make_stream_layout(config.periods(), period,
                                     {{"head", s.vocab, hidden, step.formats.head}},
                                     step.max_chunk_bytes);
}

}  // namespace gridless::models
