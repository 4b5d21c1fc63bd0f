// Weight plan of Llama checkpoints: how the tensors of a checkpoint become the operands of the step
// program, for any number of cores.
#pragma once

#include "gridless/models/llama/step.h"
#include "gridless/models/model.h"
#include "gridless/weights/checkpoint.h"
#include "gridless/weights/stream_packer.h"

namespace gridless::models {

Result<Formats> native_formats(const weights::Checkpoint& checkpoint, const LlamaConfig& config);

// Checks that every tensor is there with the shape the config asks for; an error names the first
// that is not.
Result<void> check_tensors(const weights::Checkpoint& checkpoint, const LlamaConfig& config);

// Operand `weights` of one core: layout.total_bytes() bytes.
Result<void> pack_weights(const weights::Checkpoint& checkpoint, const LlamaConfig& config,
                          const LlamaSharding& sharding, const weights::StreamLayout& layout,
                          int core, std::span<std::byte> image, FillWatch* watch);

// Operand `norms`: f32, lanes beyond the width zero.
Result<void> fill_norms(const weights::Checkpoint& checkpoint, const LlamaConfig& config,
                        std::span<float> out);
// Per half-split lane of the core's heads.
std::vector<float> rope_lanes(const LlamaConfig& config, const blocks::HeadShape& heads);

}  // namespace gridless::models
