#include "gridless/base/markup.h"

namespace gridless {

std::string escape_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
      out += '?';
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace gridless
