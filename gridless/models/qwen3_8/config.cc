#include "gridless/models/qwen3_8/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "gridless/models/config_values.h"

namespace gridless::models {

namespace {

using Json = nlohmann::json;

// Keys whose other values would need another step program.
Result<void> check_fixed(const Json& c) {
  TRY(const bool bias, flag(c, "attention_bias"));
  if (bias) return input_error("'attention_bias' is set in the config: not supported");
  TRY(const bool gate, flag(c, "attn_output_gate", true));
  if (!gate) return input_error("'attn_output_gate' is false in the config: not supported");
  const auto only = [&](const char* key, const std::string& wanted) -> Result<void> {
    TRY(const std::string value, text(c, key, wanted));
    if (value == wanted) return {};
    return input_error("'{}' in the config is '{}': only '{}' is supported", key, value, wanted);
  };
  TRY_VOID(only("hidden_act", "silu"));
  TRY_VOID(only("mamba_ssm_dtype", "float32"));
  TRY(const std::string output, text(c, "output_gate_type", "swish"));
  if (output != "swish" && output != "silu") {
    return input_error("'output_gate_type' in the config is '{}': only swish is supported", output);
  }
  TRY(const int64_t taps, positive(c, "linear_conv_kernel_dim", 4));
  if (taps != 4) return input_error("a convolution of {} taps: only 4 are supported", taps);
  return {};
}

Result<void> read_rope(const Json& c, Qwen38Config& out) {
  double share = 0.25;
  TRY(share, real(c, "partial_rotary_factor", share));
  TRY(out.rope_theta, real(c, "rope_theta", out.rope_theta));
  if (const auto it = c.find("rope_parameters"); it != c.end() && !it->is_null()) {
    if (!it->is_object()) {
      return input_error("'rope_parameters' in the config is {}, not an object", it->dump());
    }
    TRY(const std::string type, text(*it, "rope_type", "default"));
    if (type != "default") return input_error("RoPE of type '{}' is not supported", type);
    TRY(out.rope_theta, real(*it, "rope_theta", out.rope_theta));
    TRY(share, real(*it, "partial_rotary_factor", share));
  }
  out.rotary_dims = static_cast<int64_t>(static_cast<double>(out.head_dim) * share);
  if (share > 1 || out.rotary_dims % 2 != 0 || (out.head_dim - out.rotary_dims) % 2 != 0) {
    return input_error("RoPE of {} of the {} dimensions of a head: both must be even",
                       out.rotary_dims, out.head_dim);
  }
  return {};
}

// The kinds of all layers, by the list or by the interval.
Result<std::vector<bool>> read_kinds(const Json& c, int64_t layers) {
  std::vector<bool> full;
  if (const auto it = c.find("layer_types"); it != c.end() && !it->is_null()) {
    if (!it->is_array() || static_cast<int64_t>(it->size()) != layers) {
      return input_error("'layer_types' in the config is not a list of {} names", layers);
    }
    for (const Json& kind : *it) {
      if (kind != "linear_attention" && kind != "full_attention") {
        return input_error("a layer of type {}: linear_attention and full_attention are supported",
                           kind.dump());
      }
      full.push_back(kind == "full_attention");
    }
    return full;
  }
  TRY(const int64_t interval, positive(c, "full_attention_interval", 4));
  for (int64_t l = 0; l < layers; ++l) full.push_back((l + 1) % interval == 0);
  return full;
}

std::vector<bool> shortest_period(const std::vector<bool>& kinds) {
  for (size_t n = 1; n < kinds.size(); ++n) {
    if (kinds.size() % n != 0) continue;
    const auto rest = std::vector<bool>(kinds.begin() + static_cast<ptrdiff_t>(n), kinds.end());
    if (std::equal(rest.begin(), rest.end(), kinds.begin())) {
      return {kinds.begin(), kinds.begin() + static_cast<ptrdiff_t>(n)};
    }
  }
  return kinds;
}

}  // namespace

int64_t Qwen38Config::full_per_period() const { return std::ranges::count(period, true); }

bool is_qwen38(const Json& config) {
  if (!config.is_object()) return false;
  const Json type = text_part(config).value("model_type", Json());
  return type == "qwen3_5" || type == "qwen3_5_text";
}

Result<Qwen38Config> qwen38_config(const Json& config) {
  if (!is_qwen38(config)) {
    return input_error("the config is not of model_type 'qwen3_5' or 'qwen3_5_text'");
  }
  const Json& c = text_part(config);
  TRY_VOID(check_fixed(c));
  Qwen38Config out;
  TRY(out.layers, positive(c, "num_hidden_layers"));
  TRY(out.hidden, positive(c, "hidden_size"));
  TRY(out.ffn, positive(c, "intermediate_size"));
  TRY(out.vocab, positive(c, "vocab_size"));
  TRY(out.context, positive(c, "max_position_embeddings", 2048));
  TRY(out.rms_eps, real(c, "rms_norm_eps", out.rms_eps));
  TRY(out.heads, positive(c, "num_attention_heads"));
  TRY(out.kv_heads, positive(c, "num_key_value_heads", out.heads));
  TRY(out.head_dim, positive(c, "head_dim", 256));
  TRY_VOID(read_rope(c, out));
  TRY(out.key_heads, positive(c, "linear_num_key_heads"));
  TRY(out.value_heads, positive(c, "linear_num_value_heads"));
  TRY(out.key_dim, positive(c, "linear_key_head_dim"));
  TRY(out.value_dim, positive(c, "linear_value_head_dim"));
  // The root decides for whole checkpoints, the text part for text-only ones.
  TRY(const bool tied_text, flag(c, "tie_word_embeddings"));
  TRY(out.tied_head, flag(config, "tie_word_embeddings", tied_text));
  out.eos = end_of_text_ids(c);
  TRY(const std::vector<bool> kinds, read_kinds(c, out.layers));
  out.period = shortest_period(kinds);
  if (out.heads % out.kv_heads != 0) {
    return input_error("{} query heads do not divide among {} key/value heads", out.heads,
                       out.kv_heads);
  }
  if (out.value_heads % out.key_heads != 0) {
    return input_error("{} value heads do not divide among {} key heads", out.value_heads,
                       out.key_heads);
  }
  if (out.key_dim > 128 || out.value_dim > 128) {
    return input_error("heads of {} and {} in linear attention: at most 128 is supported",
                       out.key_dim, out.value_dim);
  }
  return out;
}

Qwen38Config qwen38_config(const ModelFacts& f) {
  Qwen38Config out;
  out.layers = f.layers;
  out.hidden = f.hidden;
  out.ffn = f.ffn;
  out.vocab = f.vocab;
  out.context = f.context;
  out.rms_eps = static_cast<double>(f.norm_eps);
  out.rope_theta = static_cast<double>(f.rope_base);
  out.tied_head = f.tied_head;
  out.heads = f.heads;
  out.kv_heads = f.kv_heads;
  out.head_dim = f.head_dim;
  out.rotary_dims = f.head_dim / 4;
  out.key_heads = f.linear_key_heads;
  out.value_heads = f.linear_value_heads;
  out.key_dim = out.value_dim = 128;
  out.period = {false, false, false, true};
  return out;
}

}  // namespace gridless::models
