#include "gridless/emulate/source_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/emulate/fault.h"

namespace gridless::emulate {
namespace {

std::string place(const ir::Source& s, std::span<const int64_t> index) {
  return index.empty() ? s.name : fmt::format("{}[{}]", s.name, fmt::join(index, ", "));
}

}  // namespace

SourceRun::Known& SourceRun::known(const ir::Op& op) {
  const auto [it, fresh] = by_op_.try_emplace(&op, all_.size());
  if (fresh) {
    ir::Source s = ir::source_of(op);
    const auto same = std::ranges::find(all_, s.name, [](const Known& k) { return k.source.name; });
    it->second = static_cast<size_t>(same - all_.begin());
    if (same == all_.end()) all_.push_back({.source = std::move(s), .values = {}, .rows = {}});
  }
  return all_[it->second];
}

Scalar SourceRun::give(const ir::Op& op, int core, std::span<const int64_t> index,
                       const Scalar& own) {
  Known& k = known(op);
  const ir::Source& s = k.source;
  for (size_t d = 0; d < index.size(); ++d)
    if (index[d] < 0 || index[d] >= s.extents[d])
      fault(op, "out_of_bounds",
            fmt::format("source {} on core {}: its extents are {}", place(s, index), core,
                        ir::shape_str(s.extents)),
            "check the index, or declare the source larger");
  Scalar out = own;
  const std::optional<int64_t> given = values_ ? values_->at(s, core, cores_, index) : std::nullopt;
  if (given) {
    out.i = *given;
    k.given = true;
  } else if (own.origin == Origin::kNotGiven || (scalars_only_ && own.origin != Origin::kKnown)) {
    return out;  // nobody knows it
  }
  out.origin = Origin::kKnown;
  hold(op, k, core, index, out.i);
  return out;
}

void SourceRun::hold(const ir::Op& op, Known& k, int core, std::span<const int64_t> index,
                     int64_t value) {
  const ir::Source& s = k.source;
  const auto wrong = [&](const std::string& what) {
    fault(op, "assertion",
          fmt::format("source {} is {} on core {}: {}", place(s, index), value, core, what),
          "the declaration of the source promises more than its values keep");
  };
  if (value < s.lo || value > s.hi) wrong(fmt::format("its range is {} to {}", s.lo, s.hi));
  int64_t row = s.group(core);
  for (size_t d = 0; d + 1 < index.size(); ++d) row = row * s.extents[d] + index[d];
  const int64_t last = index.empty() ? 0 : index.back();
  const int64_t at = index.empty() ? row : row * s.extents.back() + last;
  const auto [seen, fresh] = k.values.try_emplace(at, value);
  if (seen->second != value)
    wrong(fmt::format("it was {} when it was read before{}", seen->second,
                      s.alike == 1 ? "" : ", and the cores of its group have it in common"));
  if (!fresh || !s.distinct) return;
  const auto [place_of_value, first] = k.rows.try_emplace({row, value}, last);
  if (!first && place_of_value->second != last)
    wrong(fmt::format("value {} of the row is the same, and they are declared distinct",
                      place_of_value->second));
}

std::vector<std::string> SourceRun::summary() const {
  std::vector<std::string> out;
  for (const Known& k : all_)
    if (k.values.empty())
      out.push_back(fmt::format("source {} has no values", k.source.name));
    else
      out.push_back(fmt::format("source {}, {} to {}: {} values, {}", k.source.name, k.source.lo,
                                k.source.hi, k.values.size(),
                                k.given ? "from " + values_->str() : "those of this run"));
  return out;
}

}  // namespace gridless::emulate
