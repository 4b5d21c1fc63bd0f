#include "gridless/models/kimi_k3/config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gridless/models/config_values.h"

namespace gridless::models {

namespace {

using Json = nlohmann::json;

Result<void> only(const Json& c, const char* key, const std::string& wanted) {
  TRY(const std::string value, text(c, key, wanted));
  if (value == wanted) return {};
  return input_error("'{}' in the config is '{}': only '{}' is supported", key, value, wanted);
}

// Keys whose other values would need another step program.
Result<void> check_fixed(const Json& c) {
  for (const char* key :
       {"mla_use_nope", "mla_use_output_gate", "latent_moe_use_norm", "moe_renormalize"}) {
    TRY(const bool value, flag(c, key));
    if (!value) return input_error("'{}' is not true in the config: not supported", key);
  }
  TRY(const bool bias, flag(c, "attention_bias"));
  if (bias) return input_error("'attention_bias' is set in the config: not supported");
  TRY_VOID(only(c, "moe_router_activation_func", "sigmoid"));
  TRY_VOID(only(c, "hidden_act", "situ"));
  for (const char* key :
       {"first_k_dense_replace", "moe_layer_freq", "num_expert_group", "topk_group"}) {
    TRY(const int64_t value, positive(c, key, 1));
    if (value != 1) return input_error("'{}' in the config is {}: only 1 is supported", key, value);
  }
  TRY(const double scaling, real(c, "routed_scaling_factor", 1));
  if (scaling != 1) return input_error("'routed_scaling_factor' {}: only 1 is supported", scaling);
  return {};
}

// What the experts are packed as; nothing: as they are.
Result<void> check_quantization(const Json& c) {
  const auto it = c.find("quantization_config");
  if (it == c.end() || it->is_null()) return {};
  if (!it->is_object()) return input_error("'quantization_config' in the config is no object");
  TRY_VOID(only(*it, "quant_method", "compressed-tensors"));
  return only(*it, "format", "mxfp4-pack-quantized");
}

// A number that may be anything: 0 and less turn off what it limits.
Result<double> any_real(const Json& c, const char* key, double otherwise) {
  const auto it = c.find(key);
  if (it == c.end() || it->is_null()) return otherwise;
  if (!it->is_number()) return input_error("'{}' in the config is {}", key, it->dump());
  return it->get<double>();
}

// Every p-th layer, and the last: `full_attn_layers` counts from 1.
Result<int64_t> read_period(const Json& list, int64_t layers) {
  const auto wrong = [&] {
    return input_error(
        "'full_attn_layers' in the config is {}: every p-th layer of {} and the last is supported",
        list.dump(), layers);
  };
  if (!list.is_array() || list.empty()) return wrong();
  std::vector<int64_t> found;
  for (const Json& l : list) {
    if (!l.is_number_integer() || l.get<int64_t>() < 1 || l.get<int64_t>() > layers) return wrong();
    found.push_back(l.get<int64_t>() - 1);
  }
  KimiK3Config c{.layers = layers, .period = found[0] + 1};
  std::vector<int64_t> expected;
  for (int64_t l = 0; l < layers; ++l) {
    if (c.attends(l)) expected.push_back(l);
  }
  if (found != expected) return wrong();
  return c.period;
}

Result<void> read_delta(const Json& c, KimiK3Config& out) {
  const auto it = c.find("linear_attn_config");
  if (it == c.end() || !it->is_object())
    return input_error("'linear_attn_config' is missing in the config");
  TRY(out.delta_dim, positive(*it, "head_dim"));
  TRY(const int64_t heads, positive(*it, "num_heads", out.heads));
  if (heads != out.heads)
    return input_error("{} linear heads beside {} others: not supported", heads, out.heads);
  TRY(const int64_t taps, positive(*it, "short_conv_kernel_size", 4));
  if (taps != 4) return input_error("a convolution of {} taps: only 4 are supported", taps);
  TRY(const bool full_gate, flag(*it, "use_full_rank_gate"));
  if (!full_gate) return input_error("'use_full_rank_gate' is not true: not supported");
  TRY(out.decay_bound, any_real(*it, "gate_lower_bound", 0));
  if (!(out.decay_bound < 0))
    return input_error("'gate_lower_bound' {}: only a negative one is supported", out.decay_bound);
  const auto full = it->find("full_attn_layers");
  if (full == it->end()) return input_error("'full_attn_layers' is missing in the config");
  TRY(out.period, read_period(*full, out.layers));
  return {};
}

Result<void> check(const KimiK3Config& c) {
  TRY_VOID(check_layers(c));
  if (c.delta_dim > 128)
    return input_error("heads of {} in linear attention: at most 128 is supported", c.delta_dim);
  if (c.chosen > c.experts || c.chosen > 128)
    return input_error("{} of {} experts per token: at most 128 of them", c.chosen, c.experts);
  return {};
}

}  // namespace

int64_t KimiK3Config::attention_layers() const {
  int64_t n = 0;
  for (int64_t l = 0; l < layers; ++l) n += attends(l) ? 1 : 0;
  return n;
}

Result<void> check_layers(const KimiK3Config& c) {
  // The first layer is linear, some other attends, and there are experts.
  if (c.period >= 2 && c.layers >= c.period) return {};
  return input_error("{} layers of which every {}-th attends: at least {} layers are supported",
                     c.layers, c.period, std::max<int64_t>(c.period, 2));
}

bool is_kimi_k3(const Json& config) {
  if (!config.is_object()) return false;
  return text_part(config).value("model_type", Json()) == "kimi_linear" &&
         text_part(config).contains("attn_res_block_size");
}

Result<KimiK3Config> kimi_k3_config(const Json& config) {
  if (!is_kimi_k3(config)) {
    return input_error(
        "the config is not of model_type 'kimi_linear' with block attention residuals");
  }
  const Json& c = text_part(config);
  TRY_VOID(check_fixed(c));
  TRY_VOID(check_quantization(c));
  KimiK3Config out;
  TRY(out.layers, positive(c, "num_hidden_layers"));
  TRY(out.hidden, positive(c, "hidden_size"));
  TRY(out.vocab, positive(c, "vocab_size"));
  TRY(out.context, positive(c, "max_position_embeddings", 1048576));
  TRY(out.ffn, positive(c, "intermediate_size"));
  TRY(out.residual_block, positive(c, "attn_res_block_size"));
  TRY(out.rms_eps, real(c, "rms_norm_eps", out.rms_eps));
  TRY(out.situ_beta, real(c, "activation_situ_beta", out.situ_beta));
  TRY(out.situ_linear_beta, any_real(c, "activation_situ_linear_beta", out.situ_linear_beta));
  TRY(out.heads, positive(c, "num_attention_heads"));
  TRY(out.query_rank, positive(c, "q_lora_rank"));
  TRY(out.latent, positive(c, "kv_lora_rank"));
  TRY(out.nope, positive(c, "qk_nope_head_dim", 128));
  TRY(out.extra, positive(c, "qk_rope_head_dim"));
  TRY(out.value, positive(c, "v_head_dim", 128));
  TRY_VOID(read_delta(c, out));
  TRY(out.experts, positive(c, "num_experts"));
  TRY(out.chosen, positive(c, "num_experts_per_token"));
  TRY(out.moe_latent, positive(c, "routed_expert_hidden_size"));
  TRY(out.expert_inner, positive(c, "moe_intermediate_size"));
  TRY(const int64_t shared, positive(c, "num_shared_experts"));
  out.shared_inner = shared * out.expert_inner;
  out.eos = end_of_text_ids(c);
  TRY(const bool tied, flag(c, "tie_word_embeddings"));
  if (tied) return input_error("'tie_word_embeddings' is set in the config: not supported");
  TRY_VOID(check(out));
  return out;
}

KimiK3Config kimi_k3_config(const ModelFacts& f) {
  return {.layers = f.layers,
          .hidden = f.hidden,
          .vocab = f.vocab,
          .context = f.context,
          .ffn = f.ffn,
          .residual_block = f.residual_block,
          .rms_eps = static_cast<double>(f.norm_eps),
          .heads = f.heads,
          .delta_dim = f.head_dim,
          .query_rank = f.query_rank,
          .latent = f.latent,
          .nope = f.head_dim,
          .extra = f.extra_dims,
          .value = f.head_dim,
          .period = 4,
          .experts = f.experts,
          .chosen = f.experts_per_token,
          .moe_latent = f.moe_latent,
          .expert_inner = f.expert_inner,
          .shared_inner = f.shared_inner};
}

}  // namespace gridless::models
