#include "gridless/cpu/alias_map.h"

#include <utility>

namespace gridless::cpu {

namespace {

// Elements [first, last] of the buffer between which the view lies.
std::pair<int64_t, int64_t> extent(const emulate::View& v) {
  int64_t last = v.offset;
  for (size_t d = 0; d < v.shape.size(); ++d) last += (v.shape[d] - 1) * v.stride[d];
  return {v.offset, last};
}

std::pair<int64_t, int64_t> extent(const AliasMap::Alias& a) {
  return {a.target.offset, a.target.offset + a.target.num_elements() - 1};
}

}  // namespace

bool AliasMap::covers(const emulate::View& v, const Alias& alias) {
  const auto [first, last] = extent(v);
  const auto [a, b] = extent(alias);
  return first <= a && b <= last;
}

void AliasMap::add(const emulate::View& source, const emulate::View& target) {
  aliases_[target.buffer].insert_or_assign(target.offset, Alias{source, target});
}

AliasMap::Hit AliasMap::translate(const emulate::View& v, emulate::View& out) const {
  const auto it = aliases_.find(v.buffer);
  if (it == aliases_.end()) return Hit::kNone;
  const auto [first, last] = extent(v);
  for (const auto& [begin, alias] : it->second) {
    const auto [a, b] = extent(alias);
    // A view that regroups rows into words reaches beyond its plain extent: leave it to the copy.
    if (!v.plain()) return Hit::kPartly;
    if (last < a || first > b) continue;
    if (first < a || last > b) return Hit::kPartly;
    out = v;
    out.buffer = alias.source.buffer;
    out.offset = v.offset - a + alias.source.offset;
    return Hit::kInside;
  }
  return Hit::kNone;
}

std::vector<AliasMap::Alias> AliasMap::take_overlapping(const emulate::View& v) {
  std::vector<Alias> out;
  const auto it = aliases_.find(v.buffer);
  if (it == aliases_.end()) return out;
  const auto [first, last] = extent(v);
  std::erase_if(it->second, [&](const auto& entry) {
    const auto [a, b] = extent(entry.second);
    if (v.plain() && (last < a || first > b)) return false;
    out.push_back(entry.second);
    return true;
  });
  return out;
}

std::vector<AliasMap::Alias> AliasMap::take_all() {
  std::vector<Alias> out;
  for (auto& [buffer, list] : aliases_) {
    for (auto& [begin, alias] : list) out.push_back(std::move(alias));
  }
  aliases_.clear();
  return out;
}

}  // namespace gridless::cpu
