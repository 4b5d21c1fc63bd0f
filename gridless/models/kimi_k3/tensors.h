// Private to kimi_k3/: the tensors of a checkpoint by name, and what is expected of them.
#pragma once

#include <fmt/format.h>

#include "gridless/models/kimi_k3/config.h"
#include "gridless/weights/checkpoint.h"
#include "gridless/weights/stream_packer.h"

namespace gridless::models::kimi_k3 {

inline constexpr const char* kHead = "language_model.lm_head.weight";

inline std::string root_name(std::string_view tensor) {
  return fmt::format("language_model.model.{}", tensor);
}
inline std::string layer_name(int64_t layer, std::string_view tensor) {
  return fmt::format("language_model.model.layers.{}.{}", layer, tensor);
}

struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;
};
// All but those of routed experts, and A_log, which is longer than the heads in released files.
std::vector<ExpectedTensor> expected_tensors(const KimiK3Config& config);

// A matrix of a routed expert (w1: gate, w3: up, w2: down): codes and scales.
struct ExpertMatrix {
  const weights::TensorView* codes;
  const weights::TensorView* scales;

  weights::RowSource row(int64_t r) const { return {codes, r, scales}; }
};
Result<ExpertMatrix> expert_matrix(const weights::Checkpoint& checkpoint, int64_t layer,
                                   int64_t expert, std::string_view matrix);

// Per head, of a linear layer; the rest of the tensor is zero.
Result<std::vector<float>> decay_rates(const weights::Checkpoint& checkpoint,
                                       const KimiK3Config& config, int64_t layer);

}  // namespace gridless::models::kimi_k3
