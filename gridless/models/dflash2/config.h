// DFlash2 (DFlash2DraftModel): a draft model that guesses a block of tokens in one pass, from the
// layers of a target model ("taps") and with the target's embedding and head.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/models/registry.h"

namespace gridless::models {

struct Dflash2Config {
  int64_t layers = 0, hidden = 0, ffn = 0, vocab = 0;
  int64_t context = 0;  // positions it was trained for
  double rms_eps = 1e-6, rope_theta = 1e7;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t window = 0;  // a row sees positions less than this away
  int64_t block = 0;   // rows: the anchor and block - 1 guesses
  int64_t mask_token = 0;
  int64_t conv_group = 0;     // channels that share a dynamic kernel
  int64_t rank = 0;           // of the candidate selector
  int64_t candidates = 0;     // per row that it chooses from
  std::vector<int64_t> taps;  // layers of the target, as their outputs

  int64_t group() const { return heads / kv_heads; }
};

// An error names the missing or unsupported key.
Result<Dflash2Config> dflash2_config(const nlohmann::json& config);
Dflash2Config dflash2_config(const ModelFacts& facts);
bool is_dflash2(const nlohmann::json& config);

}  // namespace gridless::models
