#include "gridless/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless {

std::string SourceLoc::str() const {
  if (!known()) return "unknown location";
  return line > 0 ? fmt::format("{}:{}", file, line) : file;
}

std::string SourceLoc::str_if_known() const { return known() ? str() : ""; }

std::string Diagnostic::str() const {
  std::string out = fmt::format("{}: {}: {}", where.str(), severity_name(), message);
  for (const std::string& note : notes) out += "\n  note: " + note;
  if (!hint.empty()) out += "\n  hint: " + hint;
  return out;
}

bool has_errors(const Diagnostics& list) {
  return std::ranges::any_of(
      list, [](const Diagnostic& d) { return d.severity == Diagnostic::Severity::kError; });
}

std::string to_string(const Diagnostics& list) {
  std::string out;
  for (const Diagnostic& d : list) out += d.str() + "\n";
  return out;
}

}  // namespace gridless
