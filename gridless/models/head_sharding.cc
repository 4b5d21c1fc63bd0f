#include "gridless/models/head_sharding.h"

#include "gridless/base/integers.h"

namespace gridless::models {

HeadSharding shard_heads(int64_t kv_heads, int64_t group, int64_t head_dim, int cores) {
  HeadSharding s{.kv_heads_total = kv_heads, .group_total = group};
  s.shape.head_dim = head_dim;
  if (cores <= kv_heads) {
    s.shape.heads = ceil_div(kv_heads, cores);
    s.shape.groups = group;
  } else {
    // The least divisor of the core count that holds all heads; the cores of one head share its
    // queries.
    int64_t holders = kv_heads;
    while (cores % holders != 0) ++holders;
    s.cores_per_kv = cores / holders;
    s.shape.heads = 1;
    s.shape.groups = ceil_div(group, s.cores_per_kv);
  }
  return s;
}

HeadSharding::Heads HeadSharding::heads_of(int core) const {
  Heads out;
  const int64_t first = cores_per_kv > 1 ? core / cores_per_kv : core * shape.heads;
  const int64_t share = cores_per_kv > 1 ? core % cores_per_kv : 0;
  for (int64_t j = 0; j < shape.heads; ++j) {
    out.kv.push_back(first + j < kv_heads_total ? first + j : -1);
  }
  for (int64_t g = 0; g < shape.groups; ++g) {
    const int64_t member = share * shape.groups + g;
    std::vector<int64_t> row;
    for (int64_t kv : out.kv) {
      row.push_back(kv >= 0 && member < group_total ? kv * group_total + member : -1);
    }
    out.q.push_back(std::move(row));
  }
  return out;
}

}  // namespace gridless::models
