// Kimi K3 behind the interface of models/model.h.
#pragma once

#include "gridless/models/kimi_k3/config.h"
#include "gridless/models/model.h"

namespace gridless::models {

std::unique_ptr<Model> kimi_k3_model(KimiK3Config config);

}  // namespace gridless::models
