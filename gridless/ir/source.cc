#include "gridless/ir/source.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless::ir {
namespace {
constexpr std::string_view kRange = "gridless.range", kExtents = "gridless.extents",
                           kDistinct = "gridless.distinct", kAlike = "gridless.alike";
constexpr int64_t kMostValues = int64_t{1} << 40;
}  // namespace

int64_t Source::num_values() const {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  return n;
}

std::string problem(const Source& s) {
  if (s.name.empty()) return "a source needs a name";
  if (s.lo > s.hi || s.lo < INT32_MIN || s.hi > INT32_MAX)
    return fmt::format("source {}: {} to {} is no range of i32", s.name, s.lo, s.hi);
  if (s.alike < 0) return fmt::format("source {}: groups of {} cores", s.name, s.alike);
  int64_t values = 1;
  for (int64_t e : s.extents) {
    if (e < 1 || e > kMostValues / values)
      return fmt::format("source {}: extents {}", s.name, shape_str(s.extents));
    values *= e;
  }
  if (s.distinct && s.extents.empty())
    return fmt::format("source {} is one value: distinct from what?", s.name);
  if (s.distinct && s.extents.back() > s.hi - s.lo + 1)
    return fmt::format("source {}: {} distinct values do not fit into {} to {}", s.name,
                       s.extents.back(), s.lo, s.hi);
  return {};
}

bool is_source(const Op& op) { return op.code == OpCode::kTpuRegion && op.find(kSourceAttr); }

Source source_of(const Op& op) {
  Source s{.name = std::string(op.text_attr(kSourceAttr)),
           .lo = op.ints_attr(kRange).at(0),
           .hi = op.ints_attr(kRange).at(1),
           .distinct = op.find(kDistinct) != nullptr,
           .alike = op.int_attr_or(kAlike, 0)};
  const std::vector<int64_t>& extents = op.ints_attr(kExtents);
  s.extents.assign(extents.begin(), extents.end());
  return s;
}

std::vector<NamedAttr> attributes(const Source& s) {
  std::vector<NamedAttr> out = {
      {std::string(kSourceAttr), Attr::string(s.name)},
      {std::string(kRange), Attr::dense_array(Elem::kI64, {s.lo, s.hi})},
      {std::string(kExtents),
       Attr::dense_array(Elem::kI64, std::vector<int64_t>(s.extents.begin(), s.extents.end()))},
      {std::string(kAlike), Attr::i64(s.alike)}};
  if (s.distinct) out.emplace_back(kDistinct, Attr::unit());
  return out;
}

std::vector<Source> sources(const Module& module) {
  std::vector<Source> out;
  walk(*module.top, [&](const Op& op) {
    if (!is_source(op)) return;
    Source s = source_of(op);
    if (std::ranges::find(out, s.name, &Source::name) == out.end()) out.push_back(std::move(s));
  });
  return out;
}

}  // namespace gridless::ir
