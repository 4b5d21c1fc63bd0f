// The dense text models of Qwen3.5, 3.6 and 3.8 (one architecture): layers of Gated DeltaNet and of
// gated full attention, in a pattern that repeats (three of the one, one of the other); SwiGLU;
// zero-centred RMS norms. Read from the text_config of config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/models/registry.h"

namespace gridless::models {

struct Qwen38Config {
  int64_t layers = 0, hidden = 0, ffn = 0, vocab = 0;
  int64_t context = 0;  // positions the model was trained for
  double rms_eps = 1e-6, rope_theta = 1e7;
  bool tied_head = false;
  std::vector<int64_t> eos;  // end-of-text ids the config names

  // Full attention.
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t rotary_dims = 0;  // the leading dimensions of a head that RoPE turns
  // Gated DeltaNet.
  int64_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;  // dims of one head

  // Of the layers of one period of the pattern, which have full attention.
  std::vector<bool> period;

  int64_t periods() const { return layers / static_cast<int64_t>(period.size()); }
  bool full_attention(int64_t layer) const {
    return period[static_cast<size_t>(layer) % period.size()];
  }
  int64_t full_per_period() const;
  int64_t linear_per_period() const {
    return static_cast<int64_t>(period.size()) - full_per_period();
  }
  int64_t group() const { return heads / kv_heads; }  // query heads per key/value head
};

// `config`: the whole of config.json, or its text_config. An error names the missing or unsupported
// key.
Result<Qwen38Config> qwen38_config(const nlohmann::json& config);
Qwen38Config qwen38_config(const ModelFacts& facts);
bool is_qwen38(const nlohmann::json& config);

}  // namespace gridless::models
