// Kimi K3 (text only): layers of Kimi Delta Attention and of latent attention without rotary
// embeddings, block attention residuals, and mixtures of latent experts with shared experts; layer
// 0 has a dense MLP. Read from the text_config of config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/models/registry.h"

namespace gridless::models {

struct KimiK3Config {
  int64_t layers = 0, hidden = 0, vocab = 0;
  int64_t context = 0;         // positions the model was trained for
  int64_t ffn = 0;             // inner width of layer 0
  int64_t residual_block = 0;  // layers whose outputs the residual stream adds up
  double rms_eps = 1e-5;
  double situ_beta = 4, situ_linear_beta = 25;
  std::vector<int64_t> eos;  // end-of-text ids the config names

  int64_t heads = 0;  // of either attention
  // Kimi Delta Attention: keys and values of one width.
  int64_t delta_dim = 0;
  double decay_bound = -5;
  // Latent attention.
  int64_t query_rank = 0, latent = 0;      // what queries, and keys and values, are made from
  int64_t nope = 0, extra = 0, value = 0;  // of a head
  int64_t period = 0;                      // every period-th layer, and the last one, attends

  // Mixture of experts.
  int64_t experts = 0, chosen = 0;
  int64_t moe_latent = 0;  // width that experts read and write
  int64_t expert_inner = 0, shared_inner = 0;

  bool attends(int64_t layer) const { return layer % period == period - 1 || layer == layers - 1; }
  int64_t attention_layers() const;
  int64_t delta_layers() const { return layers - attention_layers(); }
  int64_t moe_layers() const { return layers - 1; }
  int64_t residual_blocks() const { return (layers + residual_block - 1) / residual_block; }
};

// `config`: the whole of config.json, or its text_config. An error names the missing or unsupported
// key.
Result<KimiK3Config> kimi_k3_config(const nlohmann::json& config);
KimiK3Config kimi_k3_config(const ModelFacts& facts);
bool is_kimi_k3(const nlohmann::json& config);
// Whether layers of this kind can be in a model of so many (fewer than the shape has).
Result<void> check_layers(const KimiK3Config& config);

}  // namespace gridless::models
