#include "gridless/models/dflash2/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "gridless/models/tensors.h"

namespace gridless::models {

using blocks::kLanes;
using weights::Checkpoint;
using weights::MatrixPlan;
using weights::RowSource;
using weights::TensorView;

namespace {

struct ExpectedTensor {
  std::string name;  // without the prefix
  std::vector<int64_t> shape;
};

std::vector<ExpectedTensor> expected(const Dflash2Config& m) {
  const int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim, h = m.hidden;
  const int64_t variants = blocks::kDynamicVariants, taps = blocks::kDynamicTaps;
  std::vector<ExpectedTensor> all = {{"fc.weight", {h, std::ssize(m.taps) * h}},
                                     {"hidden_norm.weight", {h}},
                                     {"norm.weight", {h}},
                                     {"candidate_selector.hidden_projection.weight", {m.rank, h}},
                                     {"candidate_selector.predecessor_codebook", {m.vocab, m.rank}},
                                     {"candidate_selector.successor_codebook", {m.vocab, m.rank}}};
  for (int64_t l = 0; l < m.layers; ++l) {
    const auto add = [&](const char* name, std::vector<int64_t> shape) {
      all.push_back({fmt::format("layers.{}.{}", l, name), std::move(shape)});
    };
    add("input_layernorm.weight", {h});
    add("post_attention_layernorm.weight", {h});
    add("self_attn.q_proj.weight", {q, h});
    add("self_attn.k_proj.weight", {kv, h});
    add("self_attn.v_proj.weight", {kv, h});
    add("self_attn.o_proj.weight", {h, q});
    add("self_attn.q_norm.weight", {m.head_dim});
    add("self_attn.k_norm.weight", {m.head_dim});
    add("mlp.gate_proj.weight", {m.ffn, h});
    add("mlp.up_proj.weight", {m.ffn, h});
    add("mlp.down_proj.weight", {h, m.ffn});
    for (const char* conv : {"attention_conv", "mlp_conv"}) {
      add(fmt::format("{}.base_kernel", conv).c_str(), {variants, taps, h});
      add(fmt::format("{}.kernel_projection.weight", conv).c_str(),
          {variants * taps * (h / m.conv_group), h});
    }
  }
  return all;
}

std::string prefix_of(const Checkpoint& draft) {
  return draft.find("model.fc.weight") ? "model." : "";
}

// The target's embedding; its head where it has one.
std::string embedding_of(const Checkpoint& target) {
  const char* name = "model.language_model.embed_tokens.weight";
  return target.find(name) ? name : "model.embed_tokens.weight";
}
std::string head_of(const Checkpoint& target) {
  return target.find("lm_head.weight") ? "lm_head.weight" : embedding_of(target);
}

// Rows of heads, half-split: the first halves of all heads, then the second.
void half_split(MatrixPlan& plan, const TensorView* t, const std::vector<int64_t>& heads,
                int64_t dim) {
  for (int64_t half = 0; half < 2; ++half)
    for (const int64_t head : heads)
      for (int64_t i = 0; i < dim / 2; ++i) {
        plan.rows.push_back(head < 0 ? RowSource{}
                                     : RowSource{t, head * dim + half * (dim / 2) + i});
      }
}

class Planner {
 public:
  Planner(const Checkpoint& draft, const Checkpoint& target, const Dflash2Config& m,
          const Dflash2Sharding& s, int core)
      : draft_(draft),
        target_(target),
        m_(m),
        s_(s),
        core_(core),
        heads_(s.attention.heads_of(core)),
        prefix_(prefix_of(draft)) {}

  std::string name(std::string_view tensor) const { return prefix_ + std::string(tensor); }
  std::string name(int64_t layer, std::string_view tensor) const {
    return fmt::format("{}layers.{}.{}", prefix_, layer, tensor);
  }

  Result<MatrixPlan> plan(const std::string& matrix, int64_t layer) const {
    if (matrix == "fc") return fc();
    if (matrix == "attention.kernel") return kernel(layer, "attention_conv");
    if (matrix == "mlp.kernel") return kernel(layer, "mlp_conv");
    if (matrix == "qkv") return qkv(layer);
    if (matrix == "o") {
      TRY(const TensorView* t, tensor(layer, "self_attn.o_proj.weight"));
      return plan_from_heads(t, heads_.q, m_.head_dim);
    }
    if (matrix == "gate_up") {
      TRY(const TensorView* gate, tensor(layer, "mlp.gate_proj.weight"));
      TRY(const TensorView* up, tensor(layer, "mlp.up_proj.weight"));
      return plan_gate_up(gate, up, inner_share(core_, s_.ffn, m_.ffn));
    }
    if (matrix == "down") {
      TRY(const TensorView* t, tensor(layer, "mlp.down_proj.weight"));
      return plan_down(t, inner_share(core_, s_.ffn, m_.ffn));
    }
    if (matrix == "selector") {
      TRY(const TensorView* t, draft_.require(name("candidate_selector.hidden_projection.weight")));
      return plan_rows(t, 0, m_.rank);
    }
    TRY(const TensorView* t, target_.require(head_of(target_)));
    return plan_rows(t, core_ * s_.vocab, s_.vocab);
  }

 private:
  Result<const TensorView*> tensor(int64_t layer, std::string_view t) const {
    return draft_.require(name(layer, t));
  }

  // All outputs from this core's panels of the features: each tap has whole panels, the last of
  // them filled up with zeros.
  Result<MatrixPlan> fc() const {
    TRY(const TensorView* t, draft_.require(name("fc.weight")));
    MatrixPlan plan{.rows = rows_of(t, 0, t->rows())};
    const int64_t n = blocks::panels(m_.hidden);
    for (int64_t i = 0; i < s_.feature_panels; ++i) {
      const int64_t panel = core_ * s_.feature_panels + i;
      const int64_t tap = panel / n, first = panel % n * kLanes;
      const int64_t count =
          tap < std::ssize(m_.taps) ? std::min(kLanes, m_.hidden - first) : int64_t{0};
      if (count > 0) plan.columns.push_back({tap * m_.hidden + first, count});
      if (count < kLanes) plan.columns.push_back({-1, kLanes - count});
    }
    return plan;
  }

  // [variant, tap, group], each group list filled up to whole panels of channels.
  Result<MatrixPlan> kernel(int64_t layer, const char* conv) const {
    TRY(const TensorView* t, tensor(layer, fmt::format("{}.kernel_projection.weight", conv)));
    const int64_t real = m_.hidden / m_.conv_group, padded = conv_shape(m_).groups();
    MatrixPlan plan{.columns = {{0, m_.hidden}}};
    for (int64_t list = 0; list < blocks::kDynamicVariants * blocks::kDynamicTaps; ++list)
      for (int64_t g = 0; g < padded; ++g)
        plan.rows.push_back(g < real ? RowSource{t, list * real + g} : RowSource{});
    return plan;
  }

  Result<MatrixPlan> qkv(int64_t layer) const {
    TRY(const TensorView* q, tensor(layer, "self_attn.q_proj.weight"));
    TRY(const TensorView* k, tensor(layer, "self_attn.k_proj.weight"));
    TRY(const TensorView* v, tensor(layer, "self_attn.v_proj.weight"));
    MatrixPlan plan{.columns = {{0, m_.hidden}}};
    for (const std::vector<int64_t>& group : heads_.q) half_split(plan, q, group, m_.head_dim);
    half_split(plan, k, heads_.kv, m_.head_dim);
    for (const int64_t head : heads_.kv)
      for (int64_t i = 0; i < m_.head_dim; ++i)
        plan.rows.push_back(head < 0 ? RowSource{} : RowSource{v, head * m_.head_dim + i});
    return plan;
  }

  const Checkpoint& draft_;
  const Checkpoint& target_;
  const Dflash2Config& m_;
  const Dflash2Sharding& s_;
  int core_;
  HeadSharding::Heads heads_;
  std::string prefix_;
};

// f32 [2 L + 2, n, 128]: two of every layer, the last one, that of the context.
Result<void> fill_norms(const Planner& planner, const Checkpoint& draft, const Dflash2Config& m,
                        std::span<float> out) {
  const auto width = static_cast<size_t>(blocks::round_to_lanes(m.hidden));
  const auto put = [&](int64_t row, const std::string& name) {
    return fill_rows(draft, name, 1, out.subspan(static_cast<size_t>(row) * width, width));
  };
  for (int64_t l = 0; l < m.layers; ++l) {
    TRY_VOID(put(2 * l, planner.name(l, "input_layernorm.weight")));
    TRY_VOID(put(2 * l + 1, planner.name(l, "post_attention_layernorm.weight")));
  }
  TRY_VOID(put(2 * m.layers, planner.name("norm.weight")));
  return put(2 * m.layers + 1, planner.name("hidden_norm.weight"));
}

// f32 [L, queries or key, half, padded_half].
Result<void> fill_head_norms(const Planner& planner, const Checkpoint& draft,
                             const Dflash2Config& m, const blocks::HeadShape& h,
                             std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  float* at = out.data();
  std::vector<float> w(static_cast<size_t>(blocks::round_to_lanes(m.head_dim)));
  for (int64_t l = 0; l < m.layers; ++l)
    for (const char* name : {"self_attn.q_norm.weight", "self_attn.k_norm.weight"}) {
      TRY_VOID(fill_rows(draft, planner.name(l, name), 1, w));
      for (int64_t half = 0; half < 2; ++half, at += h.padded_half())
        for (int64_t lane = 0; lane < h.half(); ++lane)
          at[lane] = w[static_cast<size_t>(half * (m.head_dim / 2) + lane % (m.head_dim / 2))];
    }
  return {};
}

// f32 [L, attention or MLP, variant, tap, n, 128].
Result<void> fill_conv(const Planner& planner, const Checkpoint& draft, const Dflash2Config& m,
                       std::span<float> out) {
  const int64_t rows = blocks::kDynamicVariants * blocks::kDynamicTaps;
  const auto size = static_cast<size_t>(rows * blocks::round_to_lanes(m.hidden));
  for (int64_t l = 0; l < m.layers; ++l)
    for (const char* name : {"attention_conv.base_kernel", "mlp_conv.base_kernel"}) {
      TRY_VOID(fill_rows(draft, planner.name(l, name), rows, out.first(size)));
      out = out.subspan(size);
    }
  return {};
}

void fill_frequencies(const Dflash2Config& m, const blocks::HeadShape& h, std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  for (int64_t lane = 0; lane < h.half(); ++lane) {
    const auto i = static_cast<double>(lane % (m.head_dim / 2));
    out[static_cast<size_t>(lane)] =
        static_cast<float>(std::pow(m.rope_theta, -2.0 * i / static_cast<double>(m.head_dim)));
  }
}

}  // namespace

int64_t parameters(const Dflash2Config& config) {
  int64_t total = 0;
  for (const ExpectedTensor& t : expected(config))
    total += std::accumulate(t.shape.begin(), t.shape.end(), int64_t{1}, std::multiplies());
  return total;
}

Result<void> check_tensors(const Checkpoint& draft, const Dflash2Config& config) {
  const std::string prefix = prefix_of(draft);
  for (ExpectedTensor& t : expected(config))
    TRY_VOID(check_shape(draft, prefix + t.name, std::move(t.shape)));
  return {};
}

Result<void> check_target(const Checkpoint& target, const Dflash2Config& config) {
  TRY_VOID(check_shape(target, embedding_of(target), {config.vocab, config.hidden}));
  return check_shape(target, head_of(target), {config.vocab, config.hidden});
}

Result<void> fill_operand(const Checkpoint& draft, const Checkpoint& target, const Dflash2Config& m,
                          const Dflash2Sharding& s, const weights::StreamLayout& stream,
                          std::string_view operand, int core, std::span<std::byte> out,
                          FillWatch* watch) {
  const Planner planner(draft, target, m, s, core);
  if (operand == "weights") {
    return pack_stream(stream, out, watch, [&](const std::string& name, int64_t layer) {
      return planner.plan(name, layer);
    });
  }
  const std::span<float> f = as_floats(out);
  if (operand == "embedding") return fill_rows(target, embedding_of(target), m.vocab, f);
  if (operand == "norms") return fill_norms(planner, draft, m, f);
  if (operand == "head_norms") return fill_head_norms(planner, draft, m, s.attention.shape, f);
  if (operand == "conv") return fill_conv(planner, draft, m, f);
  if (operand == "predecessor" || operand == "successor") {
    const std::string name = fmt::format("candidate_selector.{}_codebook", operand);
    return fill_rows(draft, planner.name(name), m.vocab, f);
  }
  fill_frequencies(m, s.attention.shape, f);
  return {};
}

}  // namespace gridless::models
