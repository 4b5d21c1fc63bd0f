#include "gridless/blocks/collectives/choose.h"

#include <functional>
#include <numeric>
#include <span>

namespace gridless::blocks {
namespace {

// The algorithm for parts of up to `limit` bytes; 0: of any size. Rows of one kind and number of
// cores stand together, limits ascending.
struct Choice {
  CollectiveKind kind;
  int cores;
  int64_t limit;
  Algorithm algorithm;
};

constexpr Choice kChoices[] = {
#include "gridless/blocks/collectives/choice.inc"
};

constexpr Choice kInOrder[] = {
#include "gridless/blocks/collectives/choice_in_order.inc"
};

Algorithm look_up(std::span<const Choice> choices, CollectiveKind kind, int cores,
                  int64_t part_bytes) {
  // The rows of the largest number of cores that is not more than these.
  int known = 0;
  for (const Choice& c : choices)
    if (c.kind == kind && c.cores <= cores && c.cores > known) known = c.cores;
  for (const Choice& c : choices)
    if (c.kind == kind && c.cores == known && (c.limit == 0 || part_bytes <= c.limit))
      return c.algorithm;
  return Algorithm::kDirect;  // a group of one
}

}  // namespace

Algorithm choose(CollectiveKind kind, int cores, int64_t part_bytes) {
  return look_up(kChoices, kind, cores, part_bytes);
}

Algorithm choose_in_order(int cores, int64_t part_bytes) {
  return look_up(kInOrder, CollectiveKind::kAllReduce, cores, part_bytes);
}

Collective sums_in_order(Kernel& k, const Shape& part) {
  const int64_t bytes = std::accumulate(part.begin(), part.end(), int64_t{4}, std::multiplies());
  return Collective(
      k, {.algorithm = choose_in_order(k.cores(), bytes), .group = {k.cores()}, .part = part});
}

}  // namespace gridless::blocks
