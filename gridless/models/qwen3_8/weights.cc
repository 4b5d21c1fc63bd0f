#include "gridless/models/qwen3_8/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "gridless/models/tensors.h"

namespace gridless::models {

using blocks::DeltaShape;
using blocks::kLanes;
using weights::Checkpoint;
using weights::MatrixPlan;
using weights::RowSource;
using weights::TensorView;

namespace {

// Released files hold a vision model too and name the text part so; text-only files do not.
std::string prefix_of(const Checkpoint& c) {
  constexpr const char* kBoth = "model.language_model.";
  return c.find(std::string(kBoth) + "embed_tokens.weight") ? kBoth : "model.";
}

std::string head_name(const Checkpoint& c, const Qwen38Config& m) {
  return m.tied_head ? prefix_of(c) + "embed_tokens.weight" : "lm_head.weight";
}

// The tensors of one core's share.
class Planner {
 public:
  Planner(const Checkpoint& c, const Qwen38Config& m, const Qwen38Sharding& s, int core)
      : c_(c),
        m_(m),
        s_(s),
        d_(s.delta),
        core_(core),
        heads_(s.attention.heads_of(core)),
        prefix_(prefix_of(c)) {}

  std::string name(int64_t layer, std::string_view tensor) const {
    return fmt::format("{}layers.{}.{}", prefix_, layer, tensor);
  }
  int64_t first_value_head() const { return core_ * d_.value_heads; }
  int64_t first_key_head() const { return first_value_head() / (m_.value_heads / m_.key_heads); }

  // `matrix` is "l.name" (of layer l of the period) or "head".
  Result<MatrixPlan> plan(const std::string& matrix, int64_t period) const {
    if (matrix == "head") return head();
    int64_t in_period = 0;
    std::from_chars(matrix.data(), matrix.data() + matrix.size(), in_period);
    const std::string what = matrix.substr(matrix.find('.') + 1);
    const int64_t layer = period * static_cast<int64_t>(m_.period.size()) + in_period;
    if (what == "in") return in(layer);
    if (what == "out") return out(layer);
    if (what == "qkv") return qkv(layer);
    if (what == "gate") return gate(layer);
    if (what == "o") return o(layer);
    return what == "gate_up" ? gate_up(layer) : down(layer);
  }

 private:
  Result<const TensorView*> tensor(int64_t layer, std::string_view t) const {
    return c_.require(name(layer, t));
  }

  // q | k | v | z | b a, each from a whole panel on.
  Result<MatrixPlan> in(int64_t layer) const {
    TRY(const TensorView* qkv, tensor(layer, "linear_attn.in_proj_qkv.weight"));
    TRY(const TensorView* z, tensor(layer, "linear_attn.in_proj_z.weight"));
    TRY(const TensorView* b, tensor(layer, "linear_attn.in_proj_b.weight"));
    TRY(const TensorView* a, tensor(layer, "linear_attn.in_proj_a.weight"));
    MatrixPlan plan;
    const auto add = [&](const TensorView* t, int64_t first, int64_t count) {
      for (int64_t i = 0; i < count; ++i) plan.rows.push_back({t, first + i});
    };
    const auto pad = [&] {
      while (plan.rows.size() % kLanes != 0) plan.rows.push_back({});
    };
    const int64_t key = m_.key_heads * m_.key_dim, keys = d_.key_heads * d_.key_dim;
    const int64_t values = d_.value_heads * d_.value_dim;
    add(qkv, first_key_head() * m_.key_dim, keys), pad();
    add(qkv, key + first_key_head() * m_.key_dim, keys), pad();
    add(qkv, 2 * key + first_value_head() * m_.value_dim, values), pad();
    add(z, first_value_head() * m_.value_dim, values), pad();
    add(b, first_value_head(), d_.value_heads);
    add(a, first_value_head(), d_.value_heads), pad();
    plan.columns = {{0, m_.hidden}};
    return plan;
  }

  Result<MatrixPlan> out(int64_t layer) const {
    TRY(const TensorView* t, tensor(layer, "linear_attn.out_proj.weight"));
    return MatrixPlan{
        .rows = rows_of(t, 0, t->rows()),
        .columns = {{first_value_head() * m_.value_dim, d_.value_heads * m_.value_dim}}};
  }

  // Queries by groups and the key, half-split with the turned dimensions first; the value.
  Result<MatrixPlan> qkv(int64_t layer) const {
    TRY(const TensorView* q, tensor(layer, "self_attn.q_proj.weight"));
    TRY(const TensorView* k, tensor(layer, "self_attn.k_proj.weight"));
    TRY(const TensorView* v, tensor(layer, "self_attn.v_proj.weight"));
    const int64_t dim = m_.head_dim;
    MatrixPlan plan;
    // `stride`: rows from one head to the next; a query head's gate follows it.
    const auto half_split = [&](const TensorView* t, const std::vector<int64_t>& heads,
                                int64_t stride) {
      for (int64_t half = 0; half < 2; ++half)
        for (const int64_t head : heads)
          for (int64_t i = 0; i < dim / 2; ++i) {
            plan.rows.push_back(
                head < 0 ? RowSource{} : RowSource{t, head * stride + rotary_element(m_, half, i)});
          }
    };
    for (const auto& group : heads_.q) half_split(q, group, 2 * dim);
    half_split(k, heads_.kv, dim);
    for (const int64_t head : heads_.kv) add_head(plan, v, head, head * dim);
    plan.columns = {{0, m_.hidden}};
    return plan;
  }

  Result<MatrixPlan> gate(int64_t layer) const {
    TRY(const TensorView* q, tensor(layer, "self_attn.q_proj.weight"));
    MatrixPlan plan;
    for (const auto& group : heads_.q)
      for (const int64_t head : group) add_head(plan, q, head, (2 * head + 1) * m_.head_dim);
    plan.columns = {{0, m_.hidden}};
    return plan;
  }

  // head_dim rows from `row` on; zeros for head -1.
  void add_head(MatrixPlan& plan, const TensorView* t, int64_t head, int64_t row) const {
    for (int64_t i = 0; i < m_.head_dim; ++i) {
      plan.rows.push_back(head < 0 ? RowSource{} : RowSource{t, row + i});
    }
  }

  Result<MatrixPlan> o(int64_t layer) const {
    TRY(const TensorView* t, tensor(layer, "self_attn.o_proj.weight"));
    return plan_from_heads(t, heads_.q, m_.head_dim);
  }

  Result<MatrixPlan> gate_up(int64_t layer) const {
    TRY(const TensorView* gate, tensor(layer, "mlp.gate_proj.weight"));
    TRY(const TensorView* up, tensor(layer, "mlp.up_proj.weight"));
    return plan_gate_up(gate, up, inner_share(core_, s_.ffn, m_.ffn));
  }

  Result<MatrixPlan> down(int64_t layer) const {
    TRY(const TensorView* t, tensor(layer, "mlp.down_proj.weight"));
    return plan_down(t, inner_share(core_, s_.ffn, m_.ffn));
  }

  Result<MatrixPlan> head() const {
    TRY(const TensorView* t, c_.require(head_name(c_, m_)));
    return plan_rows(t, core_ * s_.vocab, s_.vocab);
  }

  const Checkpoint& c_;
  const Qwen38Config& m_;
  const Qwen38Sharding& s_;
  const DeltaShape& d_;
  int core_;
  HeadSharding::Heads heads_;
  std::string prefix_;
};

// The layers of a kind, in order.
std::vector<int64_t> layers_of(const Qwen38Config& m, bool full) {
  std::vector<int64_t> out;
  for (int64_t l = 0; l < m.layers; ++l) {
    if (m.full_attention(l) == full) out.push_back(l);
  }
  return out;
}

Result<void> fill_norms(const Planner& planner, const Checkpoint& c, const Qwen38Config& m,
                        std::span<float> out) {
  const auto width = static_cast<size_t>(blocks::round_to_lanes(m.hidden));
  // The norms are zero-centred: 1 + w.
  const auto put = [&](int64_t row, const std::string& name) {
    return fill_rows(c, name, 1, out.subspan(static_cast<size_t>(row) * width, width), 1);
  };
  for (int64_t l = 0; l < m.layers; ++l) {
    TRY_VOID(put(2 * l, planner.name(l, "input_layernorm.weight")));
    TRY_VOID(put(2 * l + 1, planner.name(l, "post_attention_layernorm.weight")));
  }
  return put(2 * m.layers, prefix_of(c) + "norm.weight");
}

// f32 [layers, queries or key, half, padded_half].
Result<void> fill_head_norms(const Planner& planner, const Checkpoint& c, const Qwen38Config& m,
                             const blocks::HeadShape& h, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  float* at = out.data();
  for (const int64_t l : layers_of(m, true))
    for (const char* name : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) {
      TRY(const std::vector<float> w, floats(c, planner.name(l, name)));
      for (int64_t half = 0; half < 2; ++half, at += h.padded_half())
        for (int64_t lane = 0; lane < h.half(); ++lane) {
          at[lane] = 1 + w[static_cast<size_t>(rotary_element(m, half, lane % (m.head_dim / 2)))];
        }
    }
  return {};
}

// f32 [layers, 4 taps, conv_panels, 128].
Result<void> fill_conv(const Planner& planner, const Checkpoint& c, const Qwen38Config& m,
                       const DeltaShape& d, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  const int64_t key = m.key_heads * m.key_dim, width = d.conv_panels() * kLanes;
  float* at = out.data();
  for (const int64_t l : layers_of(m, false)) {
    TRY(const std::vector<float> w, floats(c, planner.name(l, "linear_attn.conv1d.weight")));
    for (int64_t t = 0; t < blocks::kConvTaps; ++t, at += width) {
      const auto put = [&](int64_t lane, int64_t channel, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          at[lane + i] = w[static_cast<size_t>((channel + i) * blocks::kConvTaps + t)];
        }
      };
      const int64_t first = planner.first_key_head() * m.key_dim;
      const int64_t keys = d.key_heads * d.key_dim;
      put(0, first, keys);
      put(d.key_panels() * kLanes, key + first, keys);
      put(2 * d.key_panels() * kLanes, 2 * key + planner.first_value_head() * m.value_dim,
          d.value_heads * d.value_dim);
    }
  }
  return {};
}

// f32 [layers, 8, 128] (blocks/gated_delta.h).
Result<void> fill_vectors(const Planner& planner, const Checkpoint& c, const Qwen38Config& m,
                          const DeltaShape& d, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  float* at = out.data();
  for (const int64_t l : layers_of(m, false)) {
    TRY(const std::vector<float> a_log, floats(c, planner.name(l, "linear_attn.A_log")));
    TRY(const std::vector<float> dt, floats(c, planner.name(l, "linear_attn.dt_bias")));
    TRY(const std::vector<float> norm, floats(c, planner.name(l, "linear_attn.norm.weight")));
    for (int64_t h = 0; h < d.value_heads; ++h) {
      const auto head = static_cast<size_t>(planner.first_value_head() + h);
      at[d.value_heads + h] = -std::exp(a_log[head]);
      at[kLanes + d.value_heads + h] = dt[head];
    }
    std::ranges::copy(norm, at + 2 * kLanes);
    at += blocks::kDeltaVectors * kLanes;
  }
  return {};
}

void fill_frequencies(const Qwen38Config& m, const blocks::HeadShape& h, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  for (int64_t lane = 0; lane < h.half(); ++lane) {
    const int64_t i = lane % (m.head_dim / 2);
    if (i >= m.rotary_dims / 2) continue;
    out[static_cast<size_t>(lane)] = static_cast<float>(
        std::pow(m.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(m.rotary_dims)));
  }
}

}  // namespace

int64_t rotary_element(const Qwen38Config& m, int64_t half, int64_t i) {
  const int64_t turned = m.rotary_dims / 2, left = (m.head_dim - m.rotary_dims) / 2;
  return i < turned ? half * turned + i : m.rotary_dims + half * left + (i - turned);
}

std::vector<ExpectedTensor> expected_tensors(const Qwen38Config& m) {
  std::vector<ExpectedTensor> all = {{"embed_tokens.weight", {m.vocab, m.hidden}},
                                     {"norm.weight", {m.hidden}}};
  if (!m.tied_head) all.push_back({"lm_head.weight", {m.vocab, m.hidden}});
  const int64_t key = m.key_heads * m.key_dim, value = m.value_heads * m.value_dim;
  const int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  for (int64_t l = 0; l < m.layers; ++l) {
    const auto add = [&](const char* name, std::vector<int64_t> shape) {
      all.push_back({fmt::format("layers.{}.{}", l, name), std::move(shape)});
    };
    add("input_layernorm.weight", {m.hidden});
    add("post_attention_layernorm.weight", {m.hidden});
    add("mlp.gate_proj.weight", {m.ffn, m.hidden});
    add("mlp.up_proj.weight", {m.ffn, m.hidden});
    add("mlp.down_proj.weight", {m.hidden, m.ffn});
    if (m.full_attention(l)) {
      add("self_attn.q_proj.weight", {2 * q, m.hidden});  // with the gates
      add("self_attn.k_proj.weight", {kv, m.hidden});
      add("self_attn.v_proj.weight", {kv, m.hidden});
      add("self_attn.o_proj.weight", {m.hidden, q});
      add("self_attn.q_norm.weight", {m.head_dim});
      add("self_attn.k_norm.weight", {m.head_dim});
      continue;
    }
    add("linear_attn.in_proj_qkv.weight", {2 * key + value, m.hidden});
    add("linear_attn.in_proj_z.weight", {value, m.hidden});
    add("linear_attn.in_proj_b.weight", {m.value_heads, m.hidden});
    add("linear_attn.in_proj_a.weight", {m.value_heads, m.hidden});
    add("linear_attn.conv1d.weight", {2 * key + value, 1, blocks::kConvTaps});
    add("linear_attn.A_log", {m.value_heads});
    add("linear_attn.dt_bias", {m.value_heads});
    add("linear_attn.norm.weight", {m.value_dim});
    add("linear_attn.out_proj.weight", {m.hidden, value});
  }
  return all;
}

Result<void> check_tensors(const Checkpoint& c, const Qwen38Config& m) {
  for (ExpectedTensor& t : expected_tensors(m)) {
    const bool root = t.name == "lm_head.weight";
    TRY_VOID(check_shape(c, root ? t.name : prefix_of(c) + t.name, std::move(t.shape)));
  }
  return {};
}

Result<void> fill_operand(const Checkpoint& c, const Qwen38Config& m, const Qwen38Sharding& s,
                          const weights::StreamLayout& stream, std::string_view operand, int core,
                          std::span<std::byte> out, FillWatch* watch) {
  const Planner planner(c, m, s, core);
  if (operand == "weights") {
    return pack_stream(stream, out, watch, [&](const std::string& name, int64_t period) {
      return planner.plan(name, period);
    });
  }
  const std::span<float> f = as_floats(out);
  if (operand == "embedding")
    return fill_rows(c, prefix_of(c) + "embed_tokens.weight", m.vocab, f, 0, watch);
  if (operand == "norms") return fill_norms(planner, c, m, f);
  if (operand == "head_norms") return fill_head_norms(planner, c, m, s.attention.shape, f);
  if (operand == "conv") return fill_conv(planner, c, m, s.delta, f);
  if (operand == "delta_vectors") return fill_vectors(planner, c, m, s.delta, f);
  fill_frequencies(m, s.attention.shape, f);
  return {};
}

}  // namespace gridless::models
