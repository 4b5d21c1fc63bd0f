#include "gridless/models/config_values.h"

#include <nlohmann/json.hpp>

namespace gridless::models {

using Json = nlohmann::json;

const Json& text_part(const Json& config) {
  const auto it = config.find("text_config");
  return it != config.end() && it->is_object() ? *it : config;
}

Result<int64_t> positive(const Json& config, const char* key, std::optional<int64_t> otherwise) {
  const auto it = config.find(key);
  if (it == config.end() || it->is_null()) {
    if (otherwise) return *otherwise;
    return input_error("the config has no '{}'", key);
  }
  if (!it->is_number_integer() || it->get<int64_t>() <= 0 ||
      it->get<int64_t>() > (int64_t{1} << 31)) {
    return input_error("'{}' in the config is {}, not a positive integer", key, it->dump());
  }
  return it->get<int64_t>();
}

Result<double> real(const Json& config, const char* key, double otherwise) {
  const auto it = config.find(key);
  if (it == config.end() || it->is_null()) return otherwise;
  if (!it->is_number() || !(it->get<double>() > 0))
    return input_error("'{}' in the config is {}, not a positive number", key, it->dump());
  return it->get<double>();
}

Result<std::string> text(const Json& config, const char* key, std::string otherwise) {
  const auto it = config.find(key);
  if (it == config.end() || it->is_null()) return otherwise;
  if (!it->is_string()) return input_error("'{}' in the config is {}, not a name", key, it->dump());
  return it->get<std::string>();
}

Result<bool> flag(const Json& config, const char* key, bool otherwise) {
  const auto it = config.find(key);
  if (it == config.end() || it->is_null()) return otherwise;
  if (!it->is_boolean())
    return input_error("'{}' in the config is {}, neither true nor false", key, it->dump());
  return it->get<bool>();
}

std::vector<int64_t> end_of_text_ids(const Json& config) {
  std::vector<int64_t> ids;
  const auto it = config.find("eos_token_id");
  if (it == config.end()) return ids;
  if (it->is_number_integer()) ids.push_back(it->get<int64_t>());
  if (it->is_array()) {
    for (const Json& id : *it) {
      if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
    }
  }
  return ids;
}

}  // namespace gridless::models
