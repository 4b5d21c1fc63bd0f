// Llama-family decoders (Touvron et al. 2023; Llama 3: Grattafiori et al. 2024): RMS norm,
// grouped-query attention with RoPE, SwiGLU. Read from config.json or from GGUF metadata in the
// same terms.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/models/registry.h"

namespace gridless::models {

// RoPE frequency scaling of Llama 3.1 (three bands by wavelength).
struct Llama3RopeScaling {
  double factor = 1, low_freq_factor = 1, high_freq_factor = 1;
  double original_context = 0;
};

struct LlamaConfig {
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;
  int64_t context = 0;  // positions the model was trained for
  double rms_eps = 1e-5, rope_theta = 10000;
  std::optional<Llama3RopeScaling> rope_scaling;
  double rope_linear_factor = 1;      // "linear" scaling: positions divided by this
  std::vector<double> rope_divisors;  // "factors" scaling of GGUF files: one per pair, or none
  bool tied_head = false;
  std::vector<int64_t> eos;  // end-of-text ids the config names

  int64_t group() const { return heads / kv_heads; }  // query heads per key/value head
  // cos/sin frequency of pair i, in f32 as the reference implementations compute it: head_dim / 2
  // values.
  std::vector<float> rope_frequencies() const;
};

// An error names the missing or unsupported key (other architectures, attention biases, other RoPE
// types).
Result<LlamaConfig> llama_config(const nlohmann::json& config);
LlamaConfig llama_config(const ModelFacts& facts);

}  // namespace gridless::models
