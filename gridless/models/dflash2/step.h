// The step of a DFlash2 draft: one kernel that takes what the target's layers said of the last
// tokens, and the last token itself, to guesses of the next ones.
//
// Context. For every token of the text the draft needs one vector, made of the target's features
// (StepShape::feature_layers). Every layer has keys and values of it, which never change: they are appended
// to a cache, and the host lets its pages take turns once the window is full (a ring).
//
// Block. Rows [anchor, mask, mask ..] attend to the context and to each other; row i guesses the
// token at its own position, and the candidate selector makes the guesses one text.
#pragma once

#include <expected>

#include "gridless/blocks/dynamic_conv.h"
#include "gridless/ir/call.h"
#include "gridless/models/dflash2/config.h"
#include "gridless/models/head_sharding.h"
#include "gridless/models/step_shape.h"

namespace gridless::models {

struct Dflash2Sharding {
  int cores = 1;
  HeadSharding attention;
  int64_t ffn = 0;             // inner width of one core, a multiple of 32
  int64_t vocab = 0;           // logits of one core
  int64_t feature_panels = 0;  // of one core: its inputs of the projection of the features
};
// An error when the cores do not divide the vocabulary.
Result<Dflash2Sharding> shard_dflash2(const Dflash2Config& config, int cores);

weights::StreamLayout dflash2_stream(const Dflash2Config& config, const Dflash2Sharding& sharding,
                                     const StepShape& step);

// `step.rows`: tokens whose features one launch appends at most.
// Operands: docs/launch_contract.md, "A draft model".
std::expected<ir::Program, Diagnostics> dflash2_step(const Dflash2Config& config,
                                                     const Dflash2Sharding& sharding,
                                                     const StepShape& step,
                                                     const weights::StreamLayout& stream);

blocks::DynamicConvShape conv_shape(const Dflash2Config& config);

}  // namespace gridless::models
