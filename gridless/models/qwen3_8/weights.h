// Weight plan of Qwen3.5/3.6/3.8 checkpoints: how tensors become the operands of the step program,
// for any number of cores. Names may have the prefix `model.language_model.` or `model.`; vision
// and multi-token-prediction tensors are left alone.
#pragma once

#include "gridless/models/model.h"
#include "gridless/models/qwen3_8/step.h"
#include "gridless/weights/checkpoint.h"

namespace gridless::models {

// Every tensor that the model uses; names without the prefix.
struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<ExpectedTensor> expected_tensors(const Qwen38Config& config);

Result<void> check_tensors(const weights::Checkpoint& checkpoint, const Qwen38Config& config);

// Writes the constant `operand` of a core.
Result<void> fill_operand(const weights::Checkpoint& checkpoint, const Qwen38Config& config,
                          const Qwen38Sharding& sharding, const weights::StreamLayout& stream,
                          std::string_view operand, int core, std::span<std::byte> out,
                          FillWatch* watch);

// Element of a head in lane i of half 0 or 1 of the half-split order: the pairs that RoPE turns
// first, then the dimensions that it leaves.
int64_t rotary_element(const Qwen38Config& config, int64_t half, int64_t i);

}  // namespace gridless::models
