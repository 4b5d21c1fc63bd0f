// JSON from outside: parsed without exceptions, with a message that says where it is wrong, and no
// deeper than the rest of the program can stand.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless {

// The JSON library parses any depth, but copies and prints a tree by recursion: a file of 100 kB of
// brackets would overflow the stack.
inline constexpr int kJsonDepth = 512;

// An error, which starts with `what`, where brackets outside strings nest deeper than kJsonDepth.
// Says nothing else about the text, which may be no JSON at all.
Result<void> check_json_depth(std::string_view text, std::string_view what);

namespace detail {
std::unexpected<Error> not_json(std::string_view what, std::string_view text, size_t at);
}

// Json: nlohmann::json, or ordered_json where the order of keys matters. Errors start with `what`
// and name line and column.
template <typename Json = nlohmann::json>
Result<Json> parse_json(std::string_view text, std::string_view what) {
  TRY_VOID(check_json_depth(text, what));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return detail::not_json(what, text, error.byte);
  } catch (const nlohmann::json::exception&) {  // a number beyond every type
    return detail::not_json(what, text, 0);
  }
}

}  // namespace gridless
