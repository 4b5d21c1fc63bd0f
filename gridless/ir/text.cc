#include "gridless/ir/text.h"

#include <fmt/format.h>

#include "gridless/ir/text_parser.h"

namespace gridless::ir {

std::expected<Module, Diagnostics> parse(std::string_view text, std::string_view file) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  if (text.size() > kMostBytes) {
    return std::unexpected(Diagnostics{{.kind = "invalid_ir",
                                        .message = "the text is larger than 1 GiB",
                                        .where = {std::string(file), 1, 1}}});
  }
  TextParser parser(text, file);
  Module module = parser.parse_file();
  if (parser.any_error()) return std::unexpected(parser.take_diagnostics());
  return module;
}

std::expected<std::vector<Location>, Diagnostics> parse_locations(std::string_view text,
                                                                  std::string_view file) {
  TextParser parser(text, file);
  std::vector<Location> locations = parser.parse_locations();
  if (parser.any_error()) return std::unexpected(parser.take_diagnostics());
  return locations;
}

}  // namespace gridless::ir
