// Weight plan of DFlash2 checkpoints: how their tensors, and the target's embedding and head,
// become the operands of the draft's step, for any number of cores. Names may have the prefix
// `model.` or none.
#pragma once

#include "gridless/models/dflash2/step.h"
#include "gridless/models/model.h"
#include "gridless/weights/checkpoint.h"

namespace gridless::models {

// Every tensor of the draft is there with the shape the config asks for.
Result<void> check_tensors(const weights::Checkpoint& draft, const Dflash2Config& config);
// The target's embedding and head fit the draft.
Result<void> check_target(const weights::Checkpoint& target, const Dflash2Config& config);

// Number of parameters, without embedding and head.
int64_t parameters(const Dflash2Config& config);

// Writes the constant `operand` of a core.
Result<void> fill_operand(const weights::Checkpoint& draft, const weights::Checkpoint& target,
                          const Dflash2Config& config, const Dflash2Sharding& sharding,
                          const weights::StreamLayout& stream, std::string_view operand, int core,
                          std::span<std::byte> out, FillWatch* watch);

}  // namespace gridless::models
