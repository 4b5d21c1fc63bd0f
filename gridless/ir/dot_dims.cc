#include "gridless/ir/dot_dims.h"

namespace gridless::ir {
namespace {

constexpr std::string_view kStart = "#tpu.dot_dimension_numbers<";

}  // namespace

std::optional<DotDims> parse_dot_dims(std::string_view attribute) {
  if (!attribute.starts_with(kStart) || !attribute.ends_with('>')) return std::nullopt;
  const std::string_view s = attribute.substr(kStart.size(), attribute.size() - kStart.size() - 1);
  DotDims d;
  std::vector<int64_t>* const lists[] = {&d.lhs_contracting, &d.rhs_contracting, &d.lhs_free,
                                         &d.rhs_free,        &d.output,          &d.lhs_batch,
                                         &d.rhs_batch};
  size_t at = 0;
  const auto accept = [&](char c) {
    while (at < s.size() && s[at] == ' ') ++at;
    if (at == s.size() || s[at] != c) return false;
    ++at;
    return true;
  };
  bool first = true;
  for (std::vector<int64_t>* list : lists) {
    if (!first && !accept(',')) return std::nullopt;
    first = false;
    if (!accept('[')) return std::nullopt;
    while (!accept(']')) {
      if (!list->empty() && !accept(',')) return std::nullopt;
      while (at < s.size() && s[at] == ' ') ++at;
      // Ranks are small: one or two digits.
      const size_t from = at;
      int64_t v = 0;
      while (at < s.size() && s[at] >= '0' && s[at] <= '9' && at - from < 3)
        v = v * 10 + (s[at++] - '0');
      if (at == from) return std::nullopt;
      list->push_back(v);
    }
  }
  while (at < s.size() && s[at] == ' ') ++at;
  if (at != s.size() || d.output.size() % 2 != 0) return std::nullopt;
  return d;
}

}  // namespace gridless::ir
