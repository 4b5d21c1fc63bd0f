#include "gridless/models/kimi_k3/tensors.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "gridless/blocks/gated_delta.h"
#include "gridless/models/kimi_k3/weights.h"
#include "gridless/models/tensors.h"
#include "gridless/weights/mxfp4.h"

namespace gridless::models {

using weights::Checkpoint;
using weights::TensorView;

namespace kimi_k3 {

std::vector<ExpectedTensor> expected_tensors(const KimiK3Config& m) {
  std::vector<ExpectedTensor> all = {{kHead, {m.vocab, m.hidden}}};
  const auto root = [&](const char* name, std::vector<int64_t> shape) {
    all.push_back({root_name(name), std::move(shape)});
  };
  root("embed_tokens.weight", {m.vocab, m.hidden});
  root("norm.weight", {m.hidden});
  root("output_attn_res_norm.weight", {m.hidden});
  root("output_attn_res_proj.weight", {1, m.hidden});
  const int64_t delta = m.heads * m.delta_dim, value = m.heads * m.value;
  for (int64_t l = 0; l < m.layers; ++l) {
    const auto add = [&](std::string_view name, std::vector<int64_t> shape) {
      all.push_back({layer_name(l, name), std::move(shape)});
    };
    const auto part = [&](const char* where, const char* name, int64_t n, int64_t k) {
      add(fmt::format("{}.{}_proj.weight", where, name), {n, k});
    };
    for (const char* norm : {"input_layernorm", "post_attention_layernorm",
                             "self_attention_res_norm", "mlp_res_norm"}) {
      add(fmt::format("{}.weight", norm), {m.hidden});
    }
    for (const char* proj : {"self_attention_res_proj", "mlp_res_proj"}) {
      add(fmt::format("{}.weight", proj), {1, m.hidden});
    }
    const char* self = "self_attn";
    if (m.attends(l)) {
      part(self, "q_a", m.query_rank, m.hidden);
      part(self, "q_b", m.heads * (m.nope + m.extra), m.query_rank);
      add("self_attn.kv_a_proj_with_mqa.weight", {m.latent + m.extra, m.hidden});
      part(self, "kv_b", m.heads * (m.nope + m.value), m.latent);
      part(self, "g", value, m.hidden);
      part(self, "o", m.hidden, value);
      add("self_attn.q_a_layernorm.weight", {m.query_rank});
      add("self_attn.kv_a_layernorm.weight", {m.latent});
    } else {
      for (const char* name : {"q", "k", "v", "g"}) part(self, name, delta, m.hidden);
      part(self, "f_a", m.delta_dim, m.hidden);
      part(self, "f_b", delta, m.delta_dim);
      part(self, "b", m.heads, m.hidden);
      part(self, "o", m.hidden, delta);
      for (const char* name : {"q", "k", "v"}) {
        add(fmt::format("self_attn.{}_conv1d.weight", name), {delta, 1, blocks::kConvTaps});
      }
      add("self_attn.dt_bias", {delta});
      add("self_attn.o_norm.weight", {m.delta_dim});
    }
    if (l == 0) {
      for (const char* name : {"gate", "up"}) part("mlp", name, m.ffn, m.hidden);
      part("mlp", "down", m.hidden, m.ffn);
      continue;
    }
    const char *moe = "block_sparse_moe", *shared = "block_sparse_moe.shared_experts";
    add("block_sparse_moe.gate.weight", {m.experts, m.hidden});
    add("block_sparse_moe.gate.e_score_correction_bias", {m.experts});
    part(moe, "routed_expert_down", m.moe_latent, m.hidden);
    part(moe, "routed_expert_up", m.hidden, m.moe_latent);
    add("block_sparse_moe.routed_expert_norm.weight", {m.moe_latent});
    for (const char* name : {"gate", "up"}) part(shared, name, m.shared_inner, m.hidden);
    part(shared, "down", m.hidden, m.shared_inner);
  }
  return all;
}

Result<ExpertMatrix> expert_matrix(const Checkpoint& c, int64_t layer, int64_t expert,
                                   std::string_view matrix) {
  const std::string name =
      layer_name(layer, fmt::format("block_sparse_moe.experts.{}.{}.weight", expert, matrix));
  ExpertMatrix out{};
  TRY(out.codes, c.require(name + "_packed"));
  TRY(out.scales, c.require(name + "_scale"));
  return out;
}

Result<std::vector<float>> decay_rates(const Checkpoint& c, const KimiK3Config& m, int64_t layer) {
  const std::string name = layer_name(layer, "self_attn.A_log");
  TRY(std::vector<float> all, floats(c, name));
  const auto heads = static_cast<size_t>(m.heads);
  if (all.size() < heads)
    return input_error("tensor {} has {} elements for {} heads", name, all.size(), m.heads);
  if (std::any_of(all.begin() + m.heads, all.end(), [](float v) { return v != 0; }))
    return input_error("tensor {} is not zero behind its {} heads", name, m.heads);
  all.resize(heads);
  return all;
}

}  // namespace kimi_k3

Result<void> check_tensors(const Checkpoint& c, const KimiK3Config& m) {
  for (kimi_k3::ExpectedTensor& t : kimi_k3::expected_tensors(m)) {
    TRY_VOID(check_shape(c, t.name, std::move(t.shape)));
  }
  for (int64_t l = 0; l < m.layers; ++l) {
    if (!m.attends(l)) TRY_VOID(kimi_k3::decay_rates(c, m, l));
  }
  for (int64_t l = 1; l < m.layers; ++l)
    for (int64_t e = 0; e < m.experts; ++e)
      for (const auto& [name, n, k] : {std::tuple{"w1", m.expert_inner, m.moe_latent},
                                       {"w3", m.expert_inner, m.moe_latent},
                                       {"w2", m.moe_latent, m.expert_inner}}) {
        TRY(const kimi_k3::ExpertMatrix x, kimi_k3::expert_matrix(c, l, e, name));
        TRY_VOID(weights::check_mxfp4(*x.codes, *x.scales));
        TRY_VOID(check_shape(c, x.codes->name, {n, k / 2}));
      }
  return {};
}

int64_t parameters_of(const KimiK3Config& m) {
  int64_t total = m.delta_layers() * m.heads;  // A_log
  for (const kimi_k3::ExpectedTensor& t : kimi_k3::expected_tensors(m)) {
    total += std::accumulate(t.shape.begin(), t.shape.end(), int64_t{1}, std::multiplies());
  }
  return total + m.moe_layers() * m.experts * 3 * m.expert_inner * m.moe_latent;
}

}  // namespace gridless::models
