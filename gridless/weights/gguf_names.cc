#include "gridless/weights/gguf_names.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "gridless/weights/dequantise.h"

namespace gridless::weights {
namespace {

using nlohmann::json;
using NamePair = std::pair<std::string_view, std::string_view>;

// Names without their last part (.weight or .bias), which both worlds share.
constexpr std::array kModelNames = {
    NamePair{"token_embd", "model.embed_tokens"},
    NamePair{"output_norm", "model.norm"},
    NamePair{"output", "lm_head"},
};
constexpr std::array kLayerNames = {
    NamePair{"attn_norm", "input_layernorm"},    NamePair{"attn_q", "self_attn.q_proj"},
    NamePair{"attn_k", "self_attn.k_proj"},      NamePair{"attn_v", "self_attn.v_proj"},
    NamePair{"attn_output", "self_attn.o_proj"}, NamePair{"attn_q_norm", "self_attn.q_norm"},
    NamePair{"attn_k_norm", "self_attn.k_norm"}, NamePair{"ffn_norm", "post_attention_layernorm"},
    NamePair{"ffn_gate", "mlp.gate_proj"},       NamePair{"ffn_up", "mlp.up_proj"},
    NamePair{"ffn_down", "mlp.down_proj"},
};

// GGUF architecture, transformers' class and model_type, and whether the converter permutes q and
// k.
struct Architecture {
  std::string_view gguf;
  std::string_view class_name;
  std::string_view model_type;
  bool permuted;
};
constexpr std::array kArchitectures = {
    Architecture{"llama", "LlamaForCausalLM", "llama", true},
    Architecture{"qwen2", "Qwen2ForCausalLM", "qwen2", false},
    Architecture{"qwen3", "Qwen3ForCausalLM", "qwen3", false},
};

template <size_t N>
std::string_view lookup(const std::array<NamePair, N>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &NamePair::first);
  return found == table.end() ? std::string_view() : found->second;
}

std::string_view architecture_of(const Gguf& gguf) {
  const GgufValue* value = gguf.find("general.architecture");
  return value ? value->string().value_or("") : "";
}

// "<architecture>.<key>". Some converters write one number per layer; where these all agree they
// are as good as one.
std::optional<GgufValue> setting(const Gguf& gguf, std::string_view key) {
  const GgufValue* value = gguf.find(fmt::format("{}.{}", architecture_of(gguf), key));
  if (!value) return std::nullopt;
  const GgufArray* array = value->array();
  if (!array) return *value;
  if (array->numbers.empty()) return std::nullopt;
  GgufValue first = array->number(0);
  for (uint64_t i = 1; i < array->count; ++i)
    if (array->number(i).number() != first.number()) return std::nullopt;
  return first;
}

std::optional<int64_t> integer(const Gguf& gguf, std::string_view key) {
  const auto value = setting(gguf, key);
  return value ? value->integer() : std::nullopt;
}

// A float32 of the file comes back as the decimal number it was made from: 1e-05, as config.json
// has it, and not 9.999999747378752e-06.
std::optional<double> number(const Gguf& gguf, std::string_view key) {
  const auto value = setting(gguf, key);
  if (!value) return std::nullopt;
  const auto x = value->number();
  if (!x || value->type != GgufType::kF32) return x;
  return std::strtod(fmt::format("{}", static_cast<float>(*x)).c_str(), nullptr);
}

template <typename T>
void put(json& config, const char* key, const std::optional<T>& value) {
  if (value) config[key] = *value;
}

const TensorView* tensor(const Gguf& gguf, std::string_view gguf_name) {
  // Before and after adopt_hugging_face_layout.
  const std::string other = hugging_face_name(gguf_name);
  for (const TensorView& t : gguf.tensors)
    if (t.name == gguf_name || t.name == other) return &t;
  return nullptr;
}

// As llama.cpp reads it: rope.scaling.factor, or rope.scale_linear of older files; a factor of 0
// scales nothing; a file that names no type means "linear".
json rope_scaling(const Gguf& gguf) {
  std::optional<double> factor = number(gguf, "rope.scaling.factor");
  if (!factor || *factor == 0) factor = number(gguf, "rope.scale_linear");
  if (factor && *factor == 0) factor.reset();
  const auto type = setting(gguf, "rope.scaling.type");
  const std::string name(printable(type     ? type->string().value_or("none")
                                   : factor ? "linear"
                                            : "none"));
  if (name == "none") factor.reset();
  if (name == "none" || name == "linear") {
    if (const TensorView* t = tensor(gguf, "rope_freqs.weight");
        t && t->rows() == 1 && info(t->dtype).readable && t->row_elements() <= 4096) {
      std::vector<float> factors(static_cast<size_t>(t->row_elements()));
      dequantise(t->dtype, t->row(0).data(), t->row_elements(), factors.data());
      json out = {{"rope_type", "factors"}, {"factors", factors}};
      put(out, "factor", factor);
      return out;
    }
    if (!factor) return nullptr;
  }
  json out = {{"rope_type", name}};
  put(out, "factor", factor);
  put(out, "original_max_position_embeddings",
      integer(gguf, "rope.scaling.original_context_length"));
  return out;
}

// What the metadata asks for and no key of a config.json of this family can say; empty if nothing.
std::string unsupported(const Gguf& gguf, int64_t head_dim) {
  const std::string arch = printable(architecture_of(gguf));
  const auto differs = [&](std::string_view key) {
    const auto value = integer(gguf, key);
    return value && *value != head_dim ? value : std::nullopt;
  };
  if (const auto n = differs("rope.dimension_count"))
    return fmt::format(
        "'{}.rope.dimension_count' is {} where heads have {} values: partial rotary embeddings are "
        "not supported",
        arch, *n, head_dim);
  if (const auto n = differs("attention.value_length"))
    return fmt::format(
        "'{}.attention.value_length' is {} where keys have {} values: values of another width are "
        "not supported",
        arch, *n, head_dim);
  if (const auto n = integer(gguf, "expert_count"); n && *n > 0)
    return fmt::format("'{}.expert_count' is {}: mixtures of experts are not supported", arch, *n);
  return "";
}

}  // namespace

std::string hugging_face_name(std::string_view gguf_name) {
  const size_t dot = gguf_name.rfind('.');
  if (dot == std::string_view::npos) return std::string(gguf_name);
  const std::string_view stem = gguf_name.substr(0, dot);
  const std::string_view last = gguf_name.substr(dot);  // ".weight"
  if (const std::string_view name = lookup(kModelNames, stem); !name.empty())
    return fmt::format("{}{}", name, last);
  if (stem.starts_with("blk.")) {
    const size_t end = stem.find('.', 4);
    const std::string_view layer = end == std::string_view::npos ? "" : stem.substr(4, end - 4);
    const bool digits =
        !layer.empty() && std::ranges::all_of(layer, [](char c) { return c >= '0' && c <= '9'; });
    if (digits)
      if (const std::string_view name = lookup(kLayerNames, stem.substr(end + 1)); !name.empty())
        return fmt::format("model.layers.{}.{}{}", layer, name, last);
  }
  return std::string(gguf_name);
}

Result<void> adopt_hugging_face_layout(Gguf& gguf) {
  const auto arch = std::ranges::find(kArchitectures, architecture_of(gguf), &Architecture::gguf);
  const bool permuted = arch != kArchitectures.end() && arch->permuted;
  const std::optional<int64_t> heads = integer(gguf, "attention.head_count");
  const std::optional<int64_t> kv_heads = integer(gguf, "attention.head_count_kv");
  for (TensorView& t : gguf.tensors) {
    t.name = hugging_face_name(t.name);
    const bool q = t.name.find(".self_attn.q_proj.") != std::string::npos;
    const bool k = t.name.find(".self_attn.k_proj.") != std::string::npos;
    if (!permuted || !(q || k)) continue;
    const int64_t count = (k && kv_heads ? kv_heads : heads).value_or(0);
    // A bias is one row of head values: its elements would move, not rows. No released model has
    // one.
    if (t.shape.size() != 2)
      return input_error("tensor '{}' is {}, where a matrix is expected: not supported", t.name,
                         shape_text(t.shape));
    if (count <= 0 || t.rows() / count / 2 * count * 2 != t.rows())
      return input_error(
          "tensor '{}' has {} rows, which {} heads of an even width do not make up: "
          "the metadata or the tensor is damaged",
          printable(t.name), t.rows(), count);
    t.rotary_heads = count;
  }
  return {};
}

json config_of(const Gguf& gguf) {
  json config = json::object();
  const std::string_view name = architecture_of(gguf);
  const auto arch = std::ranges::find(kArchitectures, name, &Architecture::gguf);
  if (arch != kArchitectures.end()) config["architectures"] = {std::string(arch->class_name)};
  config["model_type"] =
      arch != kArchitectures.end() ? std::string(arch->model_type) : std::string(name);

  const auto hidden = integer(gguf, "embedding_length");
  const auto heads = integer(gguf, "attention.head_count");
  put(config, "hidden_size", hidden);
  put(config, "intermediate_size", integer(gguf, "feed_forward_length"));
  put(config, "num_hidden_layers", integer(gguf, "block_count"));
  put(config, "num_attention_heads", heads);
  const auto kv_heads = integer(gguf, "attention.head_count_kv");
  put(config, "num_key_value_heads", kv_heads ? kv_heads : heads);
  if (const auto width = integer(gguf, "attention.key_length")) {
    config["head_dim"] = *width;
  } else if (hidden && heads && *heads > 0) {
    config["head_dim"] = *hidden / *heads;
  }
  if (const auto width = config.find("head_dim"); width != config.end())
    if (std::string what = unsupported(gguf, *width); !what.empty()) config["unsupported"] = what;
  put(config, "max_position_embeddings", integer(gguf, "context_length"));
  put(config, "rms_norm_eps", number(gguf, "attention.layer_norm_rms_epsilon"));
  config["rope_theta"] = number(gguf, "rope.freq_base").value_or(10000.0);
  config["rope_scaling"] = rope_scaling(gguf);
  if (const TensorView* t = tensor(gguf, "token_embd.weight")) config["vocab_size"] = t->rows();
  config["tie_word_embeddings"] = tensor(gguf, "output.weight") == nullptr;
  for (const auto& [key, from] : {std::pair{"bos_token_id", "tokenizer.ggml.bos_token_id"},
                                  std::pair{"eos_token_id", "tokenizer.ggml.eos_token_id"}})
    if (const GgufValue* value = gguf.find(from)) put(config, key, value->integer());
  return config;
}

}  // namespace gridless::weights
