#include "gridless/models/model.h"

#include "gridless/models/dflash2/model.h"
#include "gridless/models/kimi_k3/model.h"
#include "gridless/models/llama/model.h"
#include "gridless/models/qwen3_8/model.h"

namespace gridless::models {

Result<std::unique_ptr<Model>> model_of(const nlohmann::json& config) {
  if (is_dflash2(config)) {
    return input_error(
        "this is a draft model, which has no head of its own: run its target and give it as "
        "--draft");
  }
  if (is_qwen38(config)) {
    TRY(Qwen38Config qwen, qwen38_config(config));
    return qwen38_model(std::move(qwen));
  }
  if (is_kimi_k3(config)) {
    TRY(KimiK3Config kimi, kimi_k3_config(config));
    return kimi_k3_model(std::move(kimi));
  }
  TRY(LlamaConfig llama, llama_config(config));
  return llama_model(std::move(llama));
}

std::unique_ptr<Model> model_of(const ModelFacts& facts) {
  if (facts.architecture == "kimi_k3") return kimi_k3_model(kimi_k3_config(facts));
  if (facts.architecture == "dflash2") return dflash2_model(dflash2_config(facts));
  return facts.architecture == "qwen35" ? qwen38_model(qwen38_config(facts))
                                        : llama_model(llama_config(facts));
}

}  // namespace gridless::models
