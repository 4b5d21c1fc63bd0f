#include "gridless/decode/end_tokens.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "gridless/base/json.h"
#include "gridless/base/mapped_file.h"

namespace gridless::decode {

namespace {

constexpr const char* kTurnEnds[] = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>",
                                     "<end_of_turn>"};

void add(std::set<int32_t>& ids, const nlohmann::json& config) {
  const auto it = config.find("eos_token_id");
  if (it == config.end()) return;
  for (const nlohmann::json& id : it->is_array() ? *it : nlohmann::json::array({*it})) {
    if (id.is_number_integer()) ids.insert(id.get<int32_t>());
  }
}

}  // namespace

Result<std::vector<int32_t>> end_tokens(const weights::Checkpoint& checkpoint,
                                        const text::Tokenizer* tokenizer) {
  std::set<int32_t> ids;
  add(ids, checkpoint.config());
  if (const weights::Gguf* gguf = checkpoint.gguf()) {
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
      const weights::GgufValue* value = gguf->find(key);
      if (const auto id = value ? value->integer() : std::nullopt)
        ids.insert(static_cast<int32_t>(*id));
    }
    for (const char* text : kTurnEnds) {
      const int32_t id = tokenizer ? tokenizer->added_token(text) : -1;
      if (id >= 0 && tokenizer->is_special(id)) ids.insert(id);
    }
  } else {
    const auto file = std::filesystem::path(checkpoint.directory()) / "generation_config.json";
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) {
      if (const auto text = read_text_file(file.string())) {
        TRY(const auto config, parse_json(*text, file.string()));
        if (config.is_object()) add(ids, config);
      }
    }
  }
  if (tokenizer != nullptr && tokenizer->eos() >= 0) ids.insert(tokenizer->eos());
  return std::vector<int32_t>(ids.lower_bound(0), ids.end());
}

}  // namespace gridless::decode
