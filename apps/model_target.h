// TARGET model:NAME?key=value or CHECKPOINT?key=value: the step program of a model.
#pragma once

#include "apps/target.h"

namespace gridless::apps {

// True for model: targets and for paths that are checkpoints (a directory, a .gguf or a
// .safetensors).
bool is_model_target(const Target& target);

// Keys: rows (1, 2, 4, ... 64; of a draft model: the tokens whose features it appends), sequences,
// use, context, format, layers. Without `format` a
// checkpoint's own; a shape without weights is bf16. Only shapes are read, never the weights.
// Errors: keys that this model does not know, values out of range, core counts that do not divide
// the vocabulary.
Result<ir::Program> build_model(const Target& target, int cores);

}  // namespace gridless::apps
