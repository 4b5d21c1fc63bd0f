// Values of a config.json, with errors that name the key.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::models {

// The text model's part of a config.json that describes more, else all of it.
const nlohmann::json& text_part(const nlohmann::json& config);

// An integer from 1 to 2^31; `otherwise` where the key is missing or null.
Result<int64_t> positive(const nlohmann::json& config, const char* key,
                         std::optional<int64_t> otherwise = {});
// All numbers of a config are positive: scales, bases, epsilons.
Result<double> real(const nlohmann::json& config, const char* key, double otherwise);
Result<std::string> text(const nlohmann::json& config, const char* key, std::string otherwise);
Result<bool> flag(const nlohmann::json& config, const char* key, bool otherwise = false);
// eos_token_id: one number or a list; anything else counts as none.
std::vector<int64_t> end_of_text_ids(const nlohmann::json& config);

}  // namespace gridless::models
