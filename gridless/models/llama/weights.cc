#include "gridless/models/llama/weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/models/tensors.h"

namespace gridless::models {

using weights::Checkpoint;
using weights::ColumnRange;
using weights::Format;
using weights::MatrixPlan;
using weights::RowSource;
using weights::TensorView;

namespace {

constexpr const char* kMatrices[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                     "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                     "mlp.down_proj"};

std::string in_layer(int64_t layer, std::string_view name) {
  return fmt::format("model.layers.{}.{}.weight", layer, name);
}

// The config decides, as in transformers: some files of tied models hold an lm_head that nothing
// uses. The config of a GGUF file is tied where the file has no output.weight.
std::string head_name(const Checkpoint& c, const LlamaConfig& m) {
  return !m.tied_head && c.find("lm_head.weight") ? "lm_head.weight" : "model.embed_tokens.weight";
}

// Rows of one head of a projection; head -1 gives zeros. Half-split order is made by the caller.
void add_rows(std::vector<RowSource>& out, const TensorView* t, int64_t head, int64_t head_dim,
              int64_t from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(head < 0 ? RowSource{} : RowSource{t, head * head_dim + from + i});
  }
}

class Planner {
 public:
  Planner(const Checkpoint& c, const LlamaConfig& m, const LlamaSharding& s, int core)
      : c_(c), m_(m), s_(s), core_(core), heads_(s.attention.heads_of(core)) {}

  Result<MatrixPlan> plan(const std::string& name, int64_t layer) const {
    if (name == "qkv") return qkv(layer);
    if (name == "o") return o(layer);
    if (name == "gate_up") return gate_up(layer);
    if (name == "down") return down(layer);
    return head();
  }

 private:
  // G queries, key, value; queries and keys half-split: the first halves of all heads, then the
  // second.
  Result<MatrixPlan> qkv(int64_t layer) const {
    TRY(const TensorView* q, c_.require(in_layer(layer, "self_attn.q_proj")));
    TRY(const TensorView* k, c_.require(in_layer(layer, "self_attn.k_proj")));
    TRY(const TensorView* v, c_.require(in_layer(layer, "self_attn.v_proj")));
    const int64_t d = m_.head_dim;
    MatrixPlan plan;
    const auto half_split = [&](const TensorView* t, const std::vector<int64_t>& heads) {
      for (int64_t half = 0; half < 2; ++half) {
        for (int64_t head : heads) add_rows(plan.rows, t, head, d, half * d / 2, d / 2);
      }
    };
    for (const std::vector<int64_t>& group : heads_.q) half_split(q, group);
    half_split(k, heads_.kv);
    for (int64_t head : heads_.kv) add_rows(plan.rows, v, head, d, 0, d);
    plan.columns = {{0, m_.hidden}};
    return plan;
  }

  Result<MatrixPlan> o(int64_t layer) const {
    TRY(const TensorView* o, c_.require(in_layer(layer, "self_attn.o_proj")));
    return plan_from_heads(o, heads_.q, m_.head_dim);
  }

  Result<MatrixPlan> gate_up(int64_t layer) const {
    TRY(const TensorView* gate, c_.require(in_layer(layer, "mlp.gate_proj")));
    TRY(const TensorView* up, c_.require(in_layer(layer, "mlp.up_proj")));
    return plan_gate_up(gate, up, inner_share(core_, s_.ffn, m_.ffn));
  }

  Result<MatrixPlan> down(int64_t layer) const {
    TRY(const TensorView* t, c_.require(in_layer(layer, "mlp.down_proj")));
    return plan_down(t, inner_share(core_, s_.ffn, m_.ffn));
  }

  Result<MatrixPlan> head() const {
    TRY(const TensorView* t, c_.require(head_name(c_, m_)));
    return plan_rows(t, core_ * s_.vocab, s_.vocab);
  }

  const Checkpoint& c_;
  const LlamaConfig& m_;
  const LlamaSharding& s_;
  int core_;
  HeadSharding::Heads heads_;
};

}  // namespace

Result<Formats> native_formats(const Checkpoint& checkpoint, const LlamaConfig& config) {
  TRY(const TensorView* first, checkpoint.require(in_layer(0, "mlp.gate_proj")));
  Format layers = native_format(*first);
  for (int64_t l = 0; l < config.layers; ++l) {
    for (const char* name : kMatrices) {
      TRY(const TensorView* t, checkpoint.require(in_layer(l, name)));
      // Matrices of different block types: bf16 rounds each value once, another block format would
      // quantise a second time.
      if (native_format(*t) != layers) layers = Format::kBf16;
    }
  }
  TRY(const TensorView* head, checkpoint.require(head_name(checkpoint, config)));
  return Formats{layers, native_format(*head)};
}

Result<void> check_tensors(const Checkpoint& c, const LlamaConfig& m) {
  const int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  TRY_VOID(check_shape(c, "model.embed_tokens.weight", {m.vocab, m.hidden}));
  if (!m.tied_head && c.find("lm_head.weight")) {
    TRY_VOID(check_shape(c, "lm_head.weight", {m.vocab, m.hidden}));
  } else if (!m.tied_head && !c.gguf()) {
    return input_error(
        "the checkpoint has no lm_head.weight, and its config does not tie the head to the "
        "embedding");
  }
  TRY_VOID(check_shape(c, "model.norm.weight", {m.hidden}));
  for (int64_t l = 0; l < m.layers; ++l) {
    TRY_VOID(check_shape(c, in_layer(l, "input_layernorm"), {m.hidden}));
    TRY_VOID(check_shape(c, in_layer(l, "post_attention_layernorm"), {m.hidden}));
    TRY_VOID(check_shape(c, in_layer(l, "self_attn.q_proj"), {q, m.hidden}));
    TRY_VOID(check_shape(c, in_layer(l, "self_attn.k_proj"), {kv, m.hidden}));
    TRY_VOID(check_shape(c, in_layer(l, "self_attn.v_proj"), {kv, m.hidden}));
    TRY_VOID(check_shape(c, in_layer(l, "self_attn.o_proj"), {m.hidden, q}));
    TRY_VOID(check_shape(c, in_layer(l, "mlp.gate_proj"), {m.ffn, m.hidden}));
    TRY_VOID(check_shape(c, in_layer(l, "mlp.up_proj"), {m.ffn, m.hidden}));
    TRY_VOID(check_shape(c, in_layer(l, "mlp.down_proj"), {m.hidden, m.ffn}));
  }
  return {};
}

Result<void> pack_weights(const Checkpoint& checkpoint, const LlamaConfig& config,
                          const LlamaSharding& sharding, const weights::StreamLayout& layout,
                          int core, std::span<std::byte> image, FillWatch* watch) {
  const Planner planner(checkpoint, config, sharding, core);
  return pack_stream(layout, image, watch, [&](const std::string& name, int64_t layer) {
    return planner.plan(name, layer);
  });
}

Result<void> fill_norms(const Checkpoint& checkpoint, const LlamaConfig& config,
                        std::span<float> out) {
  const auto width = static_cast<size_t>(blocks::round_to_lanes(config.hidden));
  const auto put = [&](int64_t row, const std::string& name) {
    return fill_rows(checkpoint, name, 1, out.subspan(static_cast<size_t>(row) * width, width));
  };
  for (int64_t l = 0; l < config.layers; ++l) {
    TRY_VOID(put(2 * l, in_layer(l, "input_layernorm")));
    TRY_VOID(put(2 * l + 1, in_layer(l, "post_attention_layernorm")));
  }
  return put(2 * config.layers, "model.norm.weight");
}

std::vector<float> rope_lanes(const LlamaConfig& config, const blocks::HeadShape& heads) {
  const std::vector<float> frequency = config.rope_frequencies();
  std::vector<float> out(static_cast<size_t>(heads.padded_half()), 0.0f);
  for (int64_t lane = 0; lane < heads.half(); ++lane) {
    out[static_cast<size_t>(lane)] = frequency[static_cast<size_t>(lane % (heads.head_dim / 2))];
  }
  return out;
}

}  // namespace gridless::models
