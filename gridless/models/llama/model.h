// The Llama family behind the interface of models/model.h.
#pragma once

#include "gridless/models/llama/config.h"
#include "gridless/models/model.h"

namespace gridless::models {

std::unique_ptr<Model> llama_model(LlamaConfig config);

}  // namespace gridless::models
