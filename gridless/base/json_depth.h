// How deep JSON from outside nests. The JSON library parses any depth, but copies and prints a tree
// by recursion: a file of 100 kB of brackets would overflow the stack.
#pragma once

#include <string_view>

#include "gridless/base/error.h"

namespace gridless {

inline constexpr int kJsonDepth = 512;

// Before parsing: an error, which starts with `what`, where brackets outside strings nest deeper
// than kJsonDepth. Says nothing else about the text, which may be no JSON at all.
Result<void> check_json_depth(std::string_view text, std::string_view what);

}  // namespace gridless
