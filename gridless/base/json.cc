#include "gridless/base/json.h"

#include <algorithm>

namespace gridless {

Result<void> check_json_depth(std::string_view text, std::string_view what) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') {
        ++i;  // what follows does not end the string
      } else if (c == '"') {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kJsonDepth)
        return input_error("{} nests its JSON deeper than {} levels: not supported", what,
                           kJsonDepth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return {};
}

// `at`: how many bytes were read when the fault was seen, the wrong one included; 0: unknown.
std::unexpected<Error> detail::not_json(std::string_view what, std::string_view text, size_t at) {
  if (at == 0) return input_error("{} is not valid JSON", what);
  if (at > text.size())
    return input_error("{} is not valid JSON: it ends too early, after {} bytes", what,
                       text.size());
  const std::string_view before = text.substr(0, at - 1);
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return input_error("{} is not valid JSON: line {}, column {} is wrong or comes too early", what,
                     line, at - line_start);
}

}  // namespace gridless
