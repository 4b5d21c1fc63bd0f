// Where a value stands in a JSON text: the library that parses does not keep it.
#pragma once

#include <string>
#include <string_view>

namespace gridless {

// "line 3, column 14": where the value at `path` begins, in a text that parses. Paths are keys and
// indices as in "operands[1].shape"; "" is the whole. Where the path leads to nothing, the innermost
// value that is there. Keys with dots, brackets or escapes are not found.
std::string json_place(std::string_view text, std::string_view path);

}  // namespace gridless
