#include "gridless/models/dflash2/config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gridless/blocks/activations.h"
#include "gridless/models/config_values.h"

namespace gridless::models {

namespace {

using Json = nlohmann::json;

// Keys whose other values would need another step program.
Result<void> check_fixed(const Json& c) {
  for (const char* key : {"attention_bias", "is_causal"}) {
    TRY(const bool set, flag(c, key));
    if (set) return input_error("'{}' is set in the config of the draft: not supported", key);
  }
  TRY(const std::string activation, text(c, "hidden_act", "silu"));
  if (activation != "silu")
    return input_error("'hidden_act' in the config is '{}': only 'silu' is supported", activation);
  const auto types = c.find("layer_types");
  if (types == c.end() || types->is_null()) return {};
  if (!types->is_array()) return input_error("'layer_types' in the config is {}", types->dump());
  for (const Json& type : *types) {
    if (type != "sliding_attention") {
      return input_error("a draft layer of type {}: only sliding_attention is supported",
                         type.dump());
    }
  }
  return {};
}

Result<void> read_rope(const Json& c, Dflash2Config& out) {
  TRY(out.rope_theta, real(c, "rope_theta", out.rope_theta));
  const auto it = c.find("rope_parameters");
  if (it == c.end() || it->is_null()) return {};
  if (!it->is_object())
    return input_error("'rope_parameters' in the config is {}, not an object", it->dump());
  TRY(const std::string type, text(*it, "rope_type", "default"));
  if (type != "default") return input_error("RoPE of type '{}' is not supported", type);
  TRY(out.rope_theta, real(*it, "rope_theta", out.rope_theta));
  return {};
}

// A number from 0 on (layers and tokens count from 0).
Result<int64_t> index(const Json& value, const char* key) {
  if (value.is_number_integer() && value.get<int64_t>() >= 0 &&
      value.get<int64_t>() < (int64_t{1} << 31)) {
    return value.get<int64_t>();
  }
  return input_error("'{}' in the config has {}: a number from 0 on is needed", key, value.dump());
}

Result<void> read_draft(const Json& d, Dflash2Config& out) {
  TRY(out.block, positive(d, "block_size"));
  TRY(const int64_t taps, positive(d, "conv_kernel_size"));
  if (taps != 2) return input_error("a convolution of {} taps: only 2 are supported", taps);
  TRY(out.conv_group, positive(d, "conv_group_size"));
  TRY(out.rank, positive(d, "selector_rank"));
  TRY(out.candidates, positive(d, "selector_top_k"));
  TRY(out.mask_token, index(d.value("mask_token_id", Json()), "mask_token_id"));
  const Json layers = d.value("target_layer_ids", Json());
  if (!layers.is_array() || layers.empty() || layers.size() > 64)
    return input_error("'target_layer_ids' in the config is {}: 1 to 64 layers are needed",
                       layers.dump());
  for (const Json& layer : layers) {
    TRY(const int64_t tap, index(layer, "target_layer_ids"));
    out.taps.push_back(tap);
  }
  return {};
}

Result<void> check_sizes(const Dflash2Config& m) {
  if (m.heads % m.kv_heads != 0) {
    return input_error("{} query heads do not divide among {} key/value heads", m.heads,
                       m.kv_heads);
  }
  if (m.head_dim % 2 != 0) return input_error("head_dim {} is odd: RoPE rotates pairs", m.head_dim);
  if (m.block < 2 || m.block > 16)
    return input_error("a block of {} rows: 2 to 16 are supported", m.block);
  if (blocks::kLanes % m.conv_group != 0 || m.hidden % m.conv_group != 0) {
    return input_error("conv_group_size {}: it must divide {} and the hidden size {}", m.conv_group,
                       blocks::kLanes, m.hidden);
  }
  if (m.candidates > 64)
    return input_error("selector_top_k {}: at most 64 are supported", m.candidates);
  if (m.mask_token >= m.vocab || m.candidates > m.vocab) {
    return input_error("mask_token_id {} or selector_top_k {} beyond the vocabulary of {}",
                       m.mask_token, m.candidates, m.vocab);
  }
  // Ids are exchanged as f32.
  if (m.vocab > (int64_t{1} << 24)) return input_error("a vocabulary of {}: too large", m.vocab);
  return {};
}

}  // namespace

bool is_dflash2(const Json& config) {
  return config.is_object() && config.contains("dflash_config") &&
         config["dflash_config"].is_object();
}

Result<Dflash2Config> dflash2_config(const Json& c) {
  if (!is_dflash2(c)) return input_error("the config has no 'dflash_config'");
  TRY_VOID(check_fixed(c));
  Dflash2Config out;
  TRY(out.layers, positive(c, "num_hidden_layers"));
  TRY(out.hidden, positive(c, "hidden_size"));
  TRY(out.ffn, positive(c, "intermediate_size"));
  TRY(out.vocab, positive(c, "vocab_size"));
  TRY(out.context, positive(c, "max_position_embeddings", 262144));
  TRY(out.rms_eps, real(c, "rms_norm_eps", out.rms_eps));
  TRY(out.heads, positive(c, "num_attention_heads"));
  TRY(out.kv_heads, positive(c, "num_key_value_heads", out.heads));
  TRY(out.head_dim, positive(c, "head_dim", 128));
  TRY(out.window, positive(c, "sliding_window"));
  TRY_VOID(read_rope(c, out));
  TRY_VOID(read_draft(c["dflash_config"], out));
  TRY_VOID(check_sizes(out));
  return out;
}

Dflash2Config dflash2_config(const ModelFacts& f) {
  Dflash2Config out;
  out.layers = f.layers;
  out.hidden = f.hidden;
  out.ffn = f.ffn;
  out.vocab = f.vocab;
  out.context = f.context;
  out.rms_eps = static_cast<double>(f.norm_eps);
  out.rope_theta = static_cast<double>(f.rope_base);
  out.heads = f.heads;
  out.kv_heads = f.kv_heads;
  out.head_dim = f.head_dim;
  // As the published draft of Qwen3.8 27B has them.
  out.window = 2048;
  out.block = 8;
  out.mask_token = 248070;
  out.conv_group = 16;
  out.rank = 256;
  out.candidates = 16;
  out.taps = {5, 19, 33, 47, 61};
  return out;
}

}  // namespace gridless::models
