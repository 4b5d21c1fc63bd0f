// The Qwen3.5/3.6/3.8 family behind the interface of models/model.h.
#pragma once

#include "gridless/models/model.h"
#include "gridless/models/qwen3_8/config.h"

namespace gridless::models {

std::unique_ptr<Model> qwen38_model(Qwen38Config config);

}  // namespace gridless::models
