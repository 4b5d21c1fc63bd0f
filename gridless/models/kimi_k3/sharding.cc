#include <fmt/format.h>

#include <algorithm>

#include "gridless/base/integers.h"
#include "gridless/models/kimi_k3/step.h"

namespace gridless::models {

namespace {

// The most cores that share an expert: narrower slices waste tiles of the matrix units, and fewer
// leave some cores waiting for those whose experts were chosen more often.
constexpr int kWidestExperts = 16;

// Whether the experts can be spread over so many groups of cores.
bool fits(const KimiK3Config& m, int cores, int groups, weights::Format format) {
  if (cores % groups != 0 || m.experts % groups != 0) return false;
  const int64_t size = cores / groups;
  const int64_t unit = format == weights::Format::kBf16 ? 1 : 32;
  return m.expert_inner % (size * unit) == 0;
}

Result<int> expert_groups(const KimiK3Config& m, int cores, const StepShape& step) {
  const weights::Format format = step.formats.experts;
  if (step.expert_groups > 0) {
    const int groups = static_cast<int>(std::min<int64_t>(step.expert_groups, 1 << 20));
    if (fits(m, cores, groups, format)) return groups;
    return input_error(
        "{} groups of experts on {} cores: they must divide the cores and {} experts, and leave "
        "whole blocks of {} inner channels of an expert ({})",
        step.expert_groups, cores, m.experts, weights::spelling(format), m.expert_inner);
  }
  for (int groups = 1; groups <= cores; ++groups) {
    if (cores % groups == 0 && cores / groups <= kWidestExperts && fits(m, cores, groups, format)) {
      return groups;
    }
  }
  return input_error("{} experts with {} inner channels ({}) do not divide among {} cores",
                     m.experts, m.expert_inner, weights::spelling(format), cores);
}

}  // namespace

KimiK3Panels panels_of(const KimiK3Config& m) {
  using blocks::panels;
  return {panels(m.query_rank), panels(m.latent), panels(m.extra), panels(m.moe_latent),
          panels(m.experts)};
}

Result<KimiK3Sharding> shard_kimi_k3(const KimiK3Config& m, int cores, const StepShape& step) {
  if (cores < 1 || cores > 128) return input_error("{} cores: use 1 to 128", cores);
  for (const auto& [what, count] :
       {std::pair{"a vocabulary", m.vocab}, {"attention heads", m.heads}}) {
    if (count % cores != 0)
      return input_error("{} of {} does not divide among {} cores", what, count, cores);
  }
  KimiK3Sharding s;
  s.cores = cores;
  const int64_t heads = m.heads / cores;
  if (heads > blocks::kLanes)
    return input_error("{} heads on one core: at most {} are possible", heads, blocks::kLanes);
  s.delta = {.key_heads = heads,
             .value_heads = heads,
             .key_dim = m.delta_dim,
             .value_dim = m.delta_dim,
             .eps = m.rms_eps,
             .channel_decay = true,
             .decay_bound = m.decay_bound};
  s.latent = {
      .heads = heads, .latent = m.latent, .nope = m.nope, .extra = m.extra, .value = m.value};
  s.ffn = round_up(ceil_div(m.ffn, cores), 32);
  s.shared_inner = round_up(ceil_div(m.shared_inner, cores), 32);
  s.vocab = m.vocab / cores;
  TRY(s.groups, expert_groups(m, cores, step));
  s.experts = m.experts / s.groups;
  s.expert =
      blocks::expert_layout(m.moe_latent, m.expert_inner / s.group_size(), step.formats.experts);
  const KimiK3Panels p = panels_of(m);
  s.down_panels = ceil_div(p.query + p.latent + p.extra, cores);
  s.router_panels = ceil_div(p.moe_latent + p.experts, cores);
  s.up_panels = ceil_div(p.moe_latent, cores);
  return s;
}

weights::StreamLayout kimi_k3_stream(const KimiK3Config& m, const KimiK3Sharding& s,
                                     const StepShape& step) {
  using blocks::kLanes;
  const int64_t hidden = round_up(m.hidden, 32), heads = s.latent.heads;
  std::vector<weights::MatrixShape> all;  // in the order in which the step reads them
  for (int64_t l = 0; l < m.layers; ++l) {
    const auto add = [&](const char* name, int64_t n, int64_t k, bool paired = false) {
      all.push_back(
          {fmt::format("{}.{}", l, name), n, round_up(k, 32), step.formats.layers, paired});
    };
    if (m.attends(l)) {
      add("down_qkv", s.down_panels * kLanes, hidden);
      add("gate", heads * m.value, hidden);
      add("q", s.latent.query_panels() * kLanes, m.query_rank);
      add("k_up", m.latent, heads * m.nope);
      add("v_up", heads * m.value, m.latent);
      add("o", m.hidden, heads * m.value);
    } else {
      add("in", (s.delta.projection_panels() + blocks::panels(m.delta_dim)) * kLanes, hidden);
      add("decay", heads * m.delta_dim, m.delta_dim);
      add("o", m.hidden, heads * m.delta_dim);
    }
    if (l == 0) {
      add("gate_up", s.ffn, hidden, /*paired=*/true);
      add("down", m.hidden, s.ffn);
      continue;
    }
    add("router", s.router_panels * kLanes, hidden);
    add("gate_up", s.shared_inner, hidden, /*paired=*/true);
    add("down", m.hidden, s.shared_inner);
    add("up", m.hidden, std::min(s.up_panels * kLanes, m.moe_latent));
  }
  return weights::make_stream_layout(1, all, {{"head", s.vocab, hidden, step.formats.head}},
                                     step.max_chunk_bytes);
}

}  // namespace gridless::models
