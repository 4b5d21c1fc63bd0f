#include "gridless/emulate/source_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/base/check.h"

namespace gridless::emulate {
namespace {

using Pattern = SourceValues::Pattern;

constexpr const char* kNames[] = {"random",    "lowest", "highest", "same",
                                  "one group", "spread", "ends",    "tile edges"};

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Where a value stands: in which row (all indices but the last), and at which place there.
struct Place {
  uint64_t seed;   // of the run, the source and the group
  uint64_t row;    // number of the row
  uint64_t place;  // last index
  uint64_t count;  // values of a row
};

Place place_of(const ir::Source& s, int64_t group, std::span<const int64_t> index, int seed) {
  uint64_t h = hash(static_cast<uint64_t>(seed));
  for (char c : s.name) h = hash(h ^ static_cast<unsigned char>(c));
  Place p{.seed = hash(h ^ static_cast<uint64_t>(group)), .row = 0, .place = 0, .count = 1};
  for (size_t d = 0; d + 1 < index.size(); ++d)
    p.row = p.row * static_cast<uint64_t>(s.extents[d]) + static_cast<uint64_t>(index[d]);
  if (!index.empty()) {
    p.place = static_cast<uint64_t>(index.back());
    p.count = static_cast<uint64_t>(s.extents.back());
  }
  return p;
}

// Number `place` of a row of distinct numbers below n: Floyd's sampling, by hashes. Long rows are a
// stretch from a random start.
uint64_t distinct_below(uint64_t n, const Place& p, uint64_t row_seed) {
  constexpr uint64_t kLongRow = 64;
  if (p.count > kLongRow) return (hash(row_seed) + p.place) % n;
  uint64_t taken[kLongRow];
  for (uint64_t j = 0; j <= p.place; ++j) {
    const uint64_t last = n - p.count + j, pick = hash(row_seed ^ hash(j)) % (last + 1);
    taken[j] = std::find(taken, taken + j, pick) == taken + j ? pick : last;
  }
  return taken[p.place];
}

// Near a multiple of 8 or of 128, below n.
uint64_t tile_edge(uint64_t n, uint64_t random) {
  const uint64_t step = random % 2 == 0 ? 8 : 128;
  const uint64_t tiles = n / step + 1;
  const uint64_t edge = random / 8 % tiles * step + random / 2 % 3;  // 0, 1 or 2 above
  return std::min(edge == 0 ? 0 : edge - 1, n - 1);
}

// The value's offset from the low end of a range of n.
uint64_t offset(Pattern pattern, const ir::Source& s, const Place& p, uint64_t n, int cores) {
  const uint64_t row_seed = hash(p.seed ^ hash(p.row));
  const uint64_t random =
      s.distinct ? distinct_below(n, p, row_seed) : hash(row_seed ^ p.place) % n;
  const uint64_t place = s.distinct ? p.place : 0;
  switch (pattern) {
    case Pattern::kRandom:
      return random;
    case Pattern::kLowest:
      return place;
    case Pattern::kHighest:
      return n - 1 - place;
    case Pattern::kSame:
      return (hash(p.seed) + place) % n;
    case Pattern::kOneGroup: {
      const uint64_t share = std::max(n / static_cast<uint64_t>(cores), p.count);
      const uint64_t first = hash(p.seed) % std::max<uint64_t>(n / share, 1) * share;
      const uint64_t within = s.distinct ? (row_seed + p.place) % share : random % share;
      return std::min(first + within, n - 1);
    }
    case Pattern::kSpread:
      return (p.row * p.count + p.place) % n;
    case Pattern::kEnds:
      if (s.distinct) return p.place % 2 == 0 ? p.place / 2 : n - 1 - p.place / 2;
      return random % 2 == 0 ? 0 : n - 1;
    case Pattern::kTileEdges:
      return s.distinct ? random : tile_edge(n, hash(row_seed ^ p.place));
  }
  return 0;
}

ir::Shape shape_of(const ir::Source& s, int cores) {
  ir::Shape shape = s.extents;
  if (const int64_t groups = s.groups(cores); groups > 1) shape.insert(shape.begin(), groups);
  return shape;
}

}  // namespace

SourceValues SourceValues::of_seed(int seed) {
  GRIDLESS_CHECK(seed > 0, "seed {}", seed);
  SourceValues v;
  v.seed_ = seed;
  v.pattern_ = seed <= kPatterns ? static_cast<Pattern>(seed - 1) : Pattern::kRandom;
  return v;
}

SourceValues SourceValues::of_tensors(std::map<std::string, Tensor> tensors) {
  SourceValues v;
  v.tensors_ = std::move(tensors);
  return v;
}

std::string SourceValues::problem(std::span<const ir::Source> sources, int cores) const {
  for (const ir::Source& s : sources) {
    const auto it = tensors_.find(s.name);
    if (it == tensors_.end()) continue;
    const ir::Shape want = shape_of(s, cores);
    if (it->second.shape != want)
      return fmt::format("the values of source {} have shape {}, it takes {}{}", s.name,
                         ir::shape_str(it->second.shape), ir::shape_str(want),
                         s.groups(cores) > 1 ? " (leading axis: group of cores)" : "");
  }
  return {};
}

std::optional<int64_t> SourceValues::at(const ir::Source& s, int core, int cores,
                                        std::span<const int64_t> index) const {
  const int64_t group = s.group(core);
  if (seed_ > 0) {
    const auto n = static_cast<uint64_t>(s.hi - s.lo + 1);
    return s.lo +
           static_cast<int64_t>(offset(pattern_, s, place_of(s, group, index, seed_), n, cores));
  }
  const auto it = tensors_.find(s.name);
  if (it == tensors_.end()) return std::nullopt;
  int64_t at = s.groups(cores) > 1 ? group : 0;
  for (size_t d = 0; d < index.size(); ++d) at = at * s.extents[d] + index[d];
  return it->second.values[static_cast<size_t>(at)];
}

std::string SourceValues::str() const {
  if (seed_ == 0) return "the file";
  return fmt::format("seed {}, pattern {}", seed_, kNames[static_cast<size_t>(pattern_)]);
}

}  // namespace gridless::emulate
