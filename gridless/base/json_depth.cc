#include "gridless/base/json_depth.h"

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

}  // namespace gridless
