// Weight plan of Llama checkpoints: how the tensors of a checkpoint become the operands of the step
// program, for any number of cores.
#pragma once

#include "gridless/models/llama/step.h"
#include "gridless/weights/checkpoint.h"
#include "gridless/weights/stream_packer.h"

namespace gridless::models {

// The formats a checkpoint's matrices run in when nothing else is asked for: their own blocks where
// all matrices of the layers have the same and a stream format holds them exactly, else bf16.
struct LlamaFormats {
  weights::Format layers, head;
};
Result<LlamaFormats> native_formats(const weights::Checkpoint& checkpoint,
                                    const LlamaConfig& config);

// Checks that every tensor is there with the shape the config asks for; an error names the first
// that is not.
Result<void> check_tensors(const weights::Checkpoint& checkpoint, const LlamaConfig& config);

// Operand `weights` of one core: layout.total_rows() * 128 words.
Result<void> pack_weights(const weights::Checkpoint& checkpoint, const LlamaConfig& config,
                          const LlamaSharding& sharding, const weights::StreamLayout& layout,
                          int core, std::span<uint32_t> image);

// The operands that all cores share, in the shapes of the step program (f32, lanes beyond the width
// zero).
Result<std::vector<float>> embedding_table(const weights::Checkpoint& checkpoint,
                                           const LlamaConfig& config);
Result<std::vector<float>> norm_table(const weights::Checkpoint& checkpoint,
                                      const LlamaConfig& config);
// Per half-split lane of the core's heads.
std::vector<float> rope_lanes(const LlamaConfig& config, const blocks::HeadShape& heads);

}  // namespace gridless::models
