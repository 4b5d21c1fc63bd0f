#include "gridless/models/kimi_k3/weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "gridless/models/kimi_k3/tensors.h"
#include "gridless/models/tensors.h"

namespace gridless::models {

using blocks::kLanes;
using kimi_k3::ExpertMatrix;
using kimi_k3::layer_name;
using kimi_k3::root_name;
using weights::Checkpoint;
using weights::MatrixPlan;
using weights::RowSource;
using weights::TensorView;

namespace {

// Outputs of a matrix, part by part, each part from a whole panel on.
class Rows {
 public:
  Rows& add(const TensorView* t, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) all_.push_back({t, first + i});
    return *this;
  }
  Rows& pad() {
    while (all_.size() % kLanes != 0) all_.emplace_back();
    return *this;
  }
  // Outputs [first, first + count), zeros where there are none.
  std::vector<RowSource> range(int64_t first, int64_t count) const {
    std::vector<RowSource> out;
    for (int64_t i = first; i < first + count; ++i)
      out.push_back(i < static_cast<int64_t>(all_.size()) ? all_[static_cast<size_t>(i)]
                                                          : RowSource{});
    return out;
  }
  std::vector<RowSource> take() { return std::move(all_); }

 private:
  std::vector<RowSource> all_;
};

// The matrices of one core's share.
class Planner {
 public:
  Planner(const Checkpoint& c, const KimiK3Config& m, const KimiK3Sharding& s, int core)
      : c_(c), m_(m), s_(s), core_(core), heads_(s.latent.heads), first_head_(core * heads_) {}

  // `matrix` is "l.name" or "head".
  Result<MatrixPlan> plan(const std::string& matrix) const {
    if (matrix == "head") {
      TRY(const TensorView* t, c_.require(kimi_k3::kHead));
      return plan_rows(t, core_ * s_.vocab, s_.vocab);
    }
    int64_t l = 0;
    std::from_chars(matrix.data(), matrix.data() + matrix.size(), l);
    const std::string what = matrix.substr(matrix.find('.') + 1);
    if (what == "in") return in(l);
    if (what == "decay") return of_heads(l, "f_b_proj", m_.delta_dim);
    if (what == "gate") return of_heads(l, "g_proj", m_.value);
    if (what == "o") return o(l);
    if (what == "down_qkv") return down_qkv(l);
    if (what == "q") return q(l);
    if (what == "k_up") return k_up(l);
    if (what == "v_up") return v_up(l);
    if (what == "router") return router(l);
    if (what == "up") return up(l);
    const std::string mlp = l == 0 ? "mlp." : "block_sparse_moe.shared_experts.";
    const InnerShare share = l == 0 ? inner_share(core_, s_.ffn, m_.ffn)
                                    : inner_share(core_, s_.shared_inner, m_.shared_inner);
    if (what == "down") {
      TRY(const TensorView* t, tensor(l, mlp + "down_proj"));
      return plan_down(t, share);
    }
    TRY(const TensorView* gate, tensor(l, mlp + "gate_proj"));
    TRY(const TensorView* second, tensor(l, mlp + "up_proj"));
    return plan_gate_up(gate, second, share);
  }

  int64_t first_head() const { return first_head_; }

 private:
  Result<const TensorView*> tensor(int64_t layer, const std::string& name) const {
    return c_.require(layer_name(layer, name + ".weight"));
  }
  Result<const TensorView*> attention(int64_t layer, const char* name) const {
    return tensor(layer, std::string("self_attn.") + name);
  }

  Result<MatrixPlan> of_heads(int64_t layer, const char* name, int64_t width) const {
    TRY(const TensorView* t, attention(layer, name));
    return plan_rows(t, first_head_ * width, heads_ * width);
  }

  // q | k | v | z | b | what the decay is made from, each from a whole panel on.
  Result<MatrixPlan> in(int64_t l) const {
    Rows rows;
    const int64_t width = heads_ * m_.delta_dim;
    for (const char* name : {"q_proj", "k_proj", "v_proj", "g_proj"}) {
      TRY(const TensorView* t, attention(l, name));
      rows.add(t, core_ * width, width).pad();
    }
    TRY(const TensorView* b, attention(l, "b_proj"));
    rows.add(b, first_head_, heads_).pad();
    TRY(const TensorView* low, attention(l, "f_a_proj"));
    rows.add(low, 0, m_.delta_dim).pad();
    return MatrixPlan{.rows = rows.take(), .columns = {{0, m_.hidden}}};
  }

  Result<MatrixPlan> o(int64_t l) const {
    TRY(const TensorView* t, attention(l, "o_proj"));
    const int64_t width = heads_ * (m_.attends(l) ? m_.value : m_.delta_dim);
    return plan_down(t, {core_ * width, width});
  }

  // Queries | latent | extra key dimensions.
  Result<MatrixPlan> down_qkv(int64_t l) const {
    TRY(const TensorView* q, attention(l, "q_a_proj"));
    TRY(const TensorView* kv, attention(l, "kv_a_proj_with_mqa"));
    Rows rows;
    rows.add(q, 0, m_.query_rank).pad();
    rows.add(kv, 0, m_.latent).pad().add(kv, m_.latent, m_.extra).pad();
    return own_panels(rows, s_.down_panels);
  }

  // The experts' input | the router.
  Result<MatrixPlan> router(int64_t l) const {
    TRY(const TensorView* down, tensor(l, "block_sparse_moe.routed_expert_down_proj"));
    TRY(const TensorView* gate, tensor(l, "block_sparse_moe.gate"));
    Rows rows;
    rows.add(down, 0, m_.moe_latent).pad().add(gate, 0, m_.experts).pad();
    return own_panels(rows, s_.router_panels);
  }

  MatrixPlan own_panels(const Rows& rows, int64_t count) const {
    return {.rows = rows.range(core_ * count * kLanes, count * kLanes),
            .columns = {{0, m_.hidden}}};
  }

  // Of all heads the dimensions against the latent, then those against the extra key dimensions.
  Result<MatrixPlan> q(int64_t l) const {
    TRY(const TensorView* t, attention(l, "q_b_proj"));
    const int64_t width = m_.nope + m_.extra;
    Rows rows;
    for (int64_t h = 0; h < heads_; ++h) rows.add(t, (first_head_ + h) * width, m_.nope);
    rows.pad();
    for (int64_t h = 0; h < heads_; ++h) rows.add(t, (first_head_ + h) * width + m_.nope, m_.extra);
    return MatrixPlan{.rows = rows.pad().take(), .columns = {{0, m_.query_rank}}};
  }

  Result<MatrixPlan> v_up(int64_t l) const {
    TRY(const TensorView* t, attention(l, "kv_b_proj"));
    Rows rows;
    for (int64_t h = first_head_; h < first_head_ + heads_; ++h)
      rows.add(t, h * (m_.nope + m_.value) + m_.nope, m_.value);
    return MatrixPlan{.rows = rows.take(), .columns = {{0, m_.latent}}};
  }

  // The transposed keys' part of kv_b_proj: output i, input (head, d) is its row of (head, d),
  // column i.
  Result<MatrixPlan> k_up(int64_t l) const {
    TRY(const TensorView* t, attention(l, "kv_b_proj"));
    MatrixPlan plan{.transposed = true};
    for (int64_t h = first_head_; h < first_head_ + heads_; ++h)
      for (int64_t d = 0; d < m_.nope; ++d) plan.rows.push_back({t, h * (m_.nope + m_.value) + d});
    plan.columns = {{0, m_.latent}};
    return plan;
  }

  // All outputs, of this core's panels of inputs.
  Result<MatrixPlan> up(int64_t l) const {
    TRY(const TensorView* t, tensor(l, "block_sparse_moe.routed_expert_up_proj"));
    const int64_t panels = panels_of(m_).moe_latent, mine = core_ * s_.up_panels;
    if (mine >= panels) return MatrixPlan{};
    // Where the program reads them: the last cores' panels end with the last one.
    const int64_t read = std::min(mine, panels - s_.up_panels) * kLanes;
    const int64_t first = mine * kLanes,
                  end = std::min(first + s_.up_panels * kLanes, t->row_elements());
    MatrixPlan plan{.rows = rows_of(t, 0, t->rows())};
    if (first > read) plan.columns.push_back({-1, first - read});
    plan.columns.push_back({first, end - first});
    return plan;
  }

  const Checkpoint& c_;
  const KimiK3Config& m_;
  const KimiK3Sharding& s_;
  int core_;
  int64_t heads_, first_head_;
};

// One expert's slab of a core, of TP rank `part`.
Result<void> pack_expert(const Checkpoint& c, const KimiK3Sharding& s, int64_t layer,
                         int64_t expert, int64_t part, std::span<uint32_t> slab) {
  TRY(const ExpertMatrix gate, kimi_k3::expert_matrix(c, layer, expert, "w1"));
  TRY(const ExpertMatrix up, kimi_k3::expert_matrix(c, layer, expert, "w3"));
  TRY(const ExpertMatrix down, kimi_k3::expert_matrix(c, layer, expert, "w2"));
  const int64_t inner = s.expert.inner, first = part * inner;
  MatrixPlan gate_up, out;
  for (const ExpertMatrix& x : {gate, up})
    for (int64_t i = 0; i < inner; ++i) gate_up.rows.push_back(x.row(first + i));
  gate_up.columns = {{0, gate.row(0).inputs()}};
  for (int64_t i = 0; i < down.codes->rows(); ++i) out.rows.push_back(down.row(i));
  out.columns = {{first, inner}};
  int64_t row = 0;
  for (const auto& [matrix, plan] :
       {std::pair{&s.expert.gate_up, &gate_up}, {&s.expert.down, &out}}) {
    const int64_t rows = matrix->chunks() * matrix->used_rows();
    TRY_VOID(weights::pack_matrix(
        *matrix, matrix->used_rows(), *plan,
        slab.subspan(static_cast<size_t>(row * kLanes), static_cast<size_t>(rows * kLanes))));
    row += rows;
  }
  return {};
}

// i32 [MoE layers, experts of this core, slab_rows, 128].
Result<void> fill_experts(const Checkpoint& c, const KimiK3Config& m, const KimiK3Sharding& s,
                          int core, std::span<std::byte> out, FillWatch* watch) {
  const std::span<uint32_t> words = {reinterpret_cast<uint32_t*>(out.data()), out.size() / 4};
  const auto slab = static_cast<size_t>(s.expert.slab_rows() * kLanes);
  const int64_t first = core / s.group_size() * s.experts, part = core % s.group_size();
  const size_t layer = slab * static_cast<size_t>(s.experts);
  for (int64_t l = 1; l < m.layers; ++l) {
    const size_t begin = layer * static_cast<size_t>(l - 1);
    if (watch && !watch->wanted(4 * begin, 4 * (begin + layer))) continue;
    std::ranges::fill(words.subspan(begin, layer), 0u);
    for (int64_t e = 0; e < s.experts; ++e)
      TRY_VOID(pack_expert(c, s, l, first + e, part,
                           words.subspan(begin + slab * static_cast<size_t>(e), slab)));
    if (watch) TRY_VOID(watch->filled(4 * begin, 4 * (begin + layer)));
  }
  return {};
}

// A run of rows of f32 constants, written one vector after the other, each to whole panels.
class Writer {
 public:
  explicit Writer(std::span<float> out) : out_(out) { std::ranges::fill(out, 0.0f); }

  void put(const std::vector<float>& v) {
    std::ranges::copy(v, out_.begin() + at_);
    at_ += blocks::round_to_lanes(static_cast<int64_t>(v.size()));
  }
  Result<void> put(const Checkpoint& c, const std::string& name) {
    TRY(const std::vector<float> v, floats(c, name));
    put(v);
    return {};
  }

 private:
  std::span<float> out_;
  int64_t at_ = 0;
};

// The norm of the attention over blocks times its projection.
Result<std::vector<float>> residual_weight(const Checkpoint& c, const std::string& name) {
  TRY(std::vector<float> norm, floats(c, name + "_norm.weight"));
  TRY(const std::vector<float> proj, floats(c, name + "_proj.weight"));
  for (size_t i = 0; i < norm.size(); ++i) norm[i] *= proj[i];
  return norm;
}

Result<void> fill_norms(const Checkpoint& c, const KimiK3Config& m, Writer out) {
  for (int64_t l = 0; l < m.layers; ++l) {
    for (const auto& [residual, norm] : {std::pair{"self_attention_res", "input_layernorm"},
                                         {"mlp_res", "post_attention_layernorm"}}) {
      TRY(const std::vector<float> w, residual_weight(c, layer_name(l, residual)));
      out.put(w);
      TRY_VOID(out.put(c, layer_name(l, fmt::format("{}.weight", norm))));
    }
  }
  return {};
}

// The norm of the experts' sum, then the bias of the router.
Result<void> fill_moe_vectors(const Checkpoint& c, const KimiK3Config& m, Writer out) {
  for (int64_t l = 1; l < m.layers; ++l) {
    TRY_VOID(out.put(c, layer_name(l, "block_sparse_moe.routed_expert_norm.weight")));
    TRY_VOID(out.put(c, layer_name(l, "block_sparse_moe.gate.e_score_correction_bias")));
  }
  return {};
}

Result<void> fill_latent_norms(const Checkpoint& c, const KimiK3Config& m, Writer out) {
  for (int64_t l = 0; l < m.layers; ++l) {
    if (!m.attends(l)) continue;
    TRY_VOID(out.put(c, layer_name(l, "self_attn.q_a_layernorm.weight")));
    TRY_VOID(out.put(c, layer_name(l, "self_attn.kv_a_layernorm.weight")));
  }
  return {};
}

// By layer, tap and then q, k and v of this core's channels.
Result<void> fill_conv(const Checkpoint& c, const KimiK3Config& m, const KimiK3Sharding& s,
                       int core, Writer out) {
  const int64_t width = s.delta.key_heads * m.delta_dim;
  for (int64_t l = 0; l < m.layers; ++l) {
    if (m.attends(l)) continue;
    std::vector<std::vector<float>> taps;
    for (const char* name : {"q", "k", "v"}) {
      TRY(std::vector<float> w,
          floats(c, layer_name(l, fmt::format("self_attn.{}_conv1d.weight", name))));
      taps.push_back(std::move(w));
    }
    for (int64_t t = 0; t < blocks::kConvTaps; ++t)
      for (const std::vector<float>& w : taps) {
        std::vector<float> line;
        for (int64_t i = core * width; i < (core + 1) * width; ++i)
          line.push_back(w[static_cast<size_t>(i * blocks::kConvTaps + t)]);
        out.put(line);
      }
  }
  return {};
}

// By layer (blocks/gated_delta.h): exp(A) and dt by channel, the norm.
Result<void> fill_vectors(const Checkpoint& c, const KimiK3Config& m, const KimiK3Sharding& s,
                          int core, Writer out) {
  const int64_t width = s.delta.key_heads * m.delta_dim;
  for (int64_t l = 0; l < m.layers; ++l) {
    if (m.attends(l)) continue;
    TRY(const std::vector<float> rates, kimi_k3::decay_rates(c, m, l));
    TRY(const std::vector<float> dt, floats(c, layer_name(l, "self_attn.dt_bias")));
    std::vector<float> rate;
    for (int64_t i = core * width; i < (core + 1) * width; ++i)
      rate.push_back(std::exp(rates[static_cast<size_t>(i / m.delta_dim)]));
    out.put(rate);
    out.put({dt.begin() + core * width, dt.begin() + (core + 1) * width});
    TRY_VOID(out.put(c, layer_name(l, "self_attn.o_norm.weight")));
  }
  return {};
}

}  // namespace

Result<void> fill_operand(const Checkpoint& c, const KimiK3Config& m, const KimiK3Sharding& s,
                          const weights::StreamLayout& stream, std::string_view operand, int core,
                          std::span<std::byte> out, FillWatch* watch) {
  if (operand == "weights") {
    const Planner planner(c, m, s, core);
    return pack_stream(stream, out, watch,
                       [&](const std::string& name, int64_t) { return planner.plan(name); });
  }
  if (operand == "experts") return fill_experts(c, m, s, core, out, watch);
  const std::span<float> f = as_floats(out);
  if (operand == "embedding")
    return fill_rows(c, root_name("embed_tokens.weight"), m.vocab, f, 0, watch);
  if (operand == "norms") return fill_norms(c, m, Writer(f));
  if (operand == "moe_vectors") return fill_moe_vectors(c, m, Writer(f));
  if (operand == "latent_norms") return fill_latent_norms(c, m, Writer(f));
  if (operand == "conv") return fill_conv(c, m, s, core, Writer(f));
  if (operand == "delta_vectors") return fill_vectors(c, m, s, core, Writer(f));
  Writer norms(f);  // output_norms
  TRY(const std::vector<float> w, residual_weight(c, root_name("output_attn_res")));
  norms.put(w);
  return norms.put(c, root_name("norm.weight"));
}

}  // namespace gridless::models
