// Reading JSON from outside without exceptions: every access says what it expected.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gridless/base/error.h"
#include "gridless/base/json_depth.h"

namespace gridless::text {

using Json = nlohmann::json;

inline Result<Json> parse_json(std::string_view text, std::string_view what) {
  TRY_VOID(check_json_depth(text, what));
  Json out = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (out.is_discarded()) return input_error("{} is not valid JSON", what);
  return out;
}

// The member `key`, or null when there is none (or `object` is no object).
inline const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto it = object.find(key);
  return it == object.end() ? null : *it;
}

inline bool flag(const Json& object, const char* key, bool fallback) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

inline std::string text_of(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace gridless::text
