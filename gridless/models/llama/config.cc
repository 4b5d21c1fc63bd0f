#include "gridless/models/llama/config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>

#include "gridless/models/config_values.h"

namespace gridless::models {

namespace {

using Json = nlohmann::json;

Result<void> read_rope(const Json& config, LlamaConfig& out) {
  TRY(out.rope_theta, real(config, "rope_theta", out.rope_theta));
  // Newer configs hold theta and scaling together in rope_parameters.
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto it = config.find(key);
    if (it == config.end() || it->is_null()) continue;
    if (!it->is_object())
      return input_error("'{}' in the config is {}, not an object", key, it->dump());
    const Json& rope = *it;
    TRY(out.rope_theta, real(rope, "rope_theta", out.rope_theta));
    TRY(std::string type, text(rope, "type", "default"));
    TRY(type, text(rope, "rope_type", type));
    if (type == "default") continue;
    if (type == "linear") {
      TRY(out.rope_linear_factor, real(rope, "factor", 1));
      continue;
    }
    if (type ==
        "factors") {  // what GGUF files hold in place of the parameters: one divisor per pair
      const Json factors = rope.value("factors", Json());
      if (!factors.is_array())
        return input_error("'factors' in the config is {}, not a list", factors.dump());
      for (const Json& f : factors) {
        if (!f.is_number() || f.get<double>() == 0)
          return input_error("a RoPE factor is {}", f.dump());
        out.rope_divisors.push_back(f.get<double>());
      }
      TRY(out.rope_linear_factor, real(rope, "factor", 1));
      continue;
    }
    if (type != "llama3") {
      return input_error(
          "RoPE scaling of type '{}' is not supported: default, linear, llama3 and factors are",
          type);
    }
    Llama3RopeScaling s;
    TRY(s.factor, real(rope, "factor", 8));
    TRY(s.low_freq_factor, real(rope, "low_freq_factor", 1));
    TRY(s.high_freq_factor, real(rope, "high_freq_factor", 4));
    TRY(s.original_context, real(rope, "original_max_position_embeddings", 8192));
    if (!(s.high_freq_factor > s.low_freq_factor)) {
      return input_error("'high_freq_factor' in the config is {}, not above 'low_freq_factor', {}",
                         s.high_freq_factor, s.low_freq_factor);
    }
    out.rope_scaling = s;
  }
  return {};
}

}  // namespace

std::vector<float> LlamaConfig::rope_frequencies() const {
  std::vector<float> out;
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    double f = std::pow(rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    f /= rope_linear_factor;
    if (!rope_divisors.empty()) f /= rope_divisors[static_cast<size_t>(i)];
    if (rope_scaling) {
      const Llama3RopeScaling& s = *rope_scaling;
      const double wavelength = 2 * std::numbers::pi / f;
      const double low = s.original_context / s.low_freq_factor;
      const double high = s.original_context / s.high_freq_factor;
      if (wavelength > low) {
        f /= s.factor;
      } else if (wavelength > high) {
        const double smooth = (s.original_context / wavelength - s.low_freq_factor) /
                              (s.high_freq_factor - s.low_freq_factor);
        f = (1 - smooth) * f / s.factor + smooth * f;
      }
    }
    out.push_back(static_cast<float>(f));
  }
  return out;
}

Result<LlamaConfig> llama_config(const Json& config) {
  if (!config.is_object()) return input_error("the config is {}, not an object", config.dump());
  TRY(const std::string type, text(config, "model_type", ""));
  if (type != "llama") {
    return input_error("architecture '{}' is not supported: this version runs 'llama' models",
                       type.empty() ? "(none named)" : type);
  }
  // What a GGUF file asks for beyond the keys below (see weights::config_of).
  TRY(const std::string unsupported, text(config, "unsupported", ""));
  if (!unsupported.empty()) return input_error("{}", unsupported);
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    TRY(const bool bias, flag(config, key));
    if (bias) {
      return input_error("'{}' is set in the config: projections with biases are not supported",
                         key);
    }
  }
  TRY(const std::string activation, text(config, "hidden_act", "silu"));
  if (activation != "silu")
    return input_error("'hidden_act' in the config is '{}': only 'silu' is supported", activation);
  LlamaConfig out;
  TRY(out.layers, positive(config, "num_hidden_layers"));
  TRY(out.hidden, positive(config, "hidden_size"));
  TRY(out.heads, positive(config, "num_attention_heads"));
  TRY(out.kv_heads, positive(config, "num_key_value_heads", out.heads));
  TRY(out.head_dim, positive(config, "head_dim", out.hidden / out.heads));
  TRY(out.ffn, positive(config, "intermediate_size"));
  TRY(out.vocab, positive(config, "vocab_size"));
  TRY(out.context, positive(config, "max_position_embeddings", 2048));
  TRY(out.rms_eps, real(config, "rms_norm_eps", 1e-6));
  TRY_VOID(read_rope(config, out));
  TRY(out.tied_head, flag(config, "tie_word_embeddings"));
  if (out.head_dim < 1) {
    return input_error("{} hidden units are too few for {} heads: the config needs a 'head_dim'",
                       out.hidden, out.heads);
  }
  if (out.heads % out.kv_heads != 0) {
    return input_error("{} query heads do not divide among {} key/value heads", out.heads,
                       out.kv_heads);
  }
  if (out.head_dim % 2 != 0)
    return input_error("head_dim {} is odd: RoPE rotates pairs", out.head_dim);
  if (!out.rope_divisors.empty() &&
      static_cast<int64_t>(out.rope_divisors.size()) != out.head_dim / 2) {
    return input_error("{} RoPE factors for a head of {}", out.rope_divisors.size(), out.head_dim);
  }
  out.eos = end_of_text_ids(config);
  return out;
}

LlamaConfig llama_config(const ModelFacts& f) {
  LlamaConfig out;
  out.layers = f.layers;
  out.hidden = f.hidden;
  out.heads = f.heads;
  out.kv_heads = f.kv_heads;
  out.head_dim = f.head_dim;
  out.ffn = f.ffn;
  out.vocab = f.vocab;
  out.context = f.context;
  out.rms_eps = static_cast<double>(f.norm_eps);
  out.rope_theta = static_cast<double>(f.rope_base);
  out.tied_head = f.tied_head;
  return out;
}

}  // namespace gridless::models
