// Reading JSON from outside without exceptions: every access says what it expected.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gridless/base/json.h"

namespace gridless::text {

using Json = nlohmann::json;

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
