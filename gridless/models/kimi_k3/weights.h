// Weight plan of Kimi K3 checkpoints: how tensors become the operands of the step program, for any
// number of cores. Names have the prefix `language_model.`; vision tensors are left alone. Routed
// experts are MXFP4 (weights/mxfp4.h), all other matrices bf16.
#pragma once

#include <string>
#include <vector>

#include "gridless/models/kimi_k3/step.h"
#include "gridless/models/model.h"
#include "gridless/weights/checkpoint.h"

namespace gridless::models {

Result<void> check_tensors(const weights::Checkpoint& checkpoint, const KimiK3Config& config);

// All weights, norms included.
int64_t parameters_of(const KimiK3Config& config);

// Writes the constant `operand` of a core.
Result<void> fill_operand(const weights::Checkpoint& checkpoint, const KimiK3Config& config,
                          const KimiK3Sharding& sharding, const weights::StreamLayout& stream,
                          std::string_view operand, int core, std::span<std::byte> out,
                          FillWatch* watch);

}  // namespace gridless::models
