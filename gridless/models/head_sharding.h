// How query and key/value heads are spread over cores. Query heads stay with their key/value head;
// key/value heads are padded with zero heads when they do not divide, and repeated when there are
// more cores than heads.
#pragma once

#include <vector>

#include "gridless/blocks/attention.h"

namespace gridless::models {

struct HeadSharding {
  blocks::HeadShape shape;                      // of one core
  int64_t kv_heads_total = 0, group_total = 0;  // of the model
  int64_t cores_per_kv = 1;                     // > 1 when key/value heads are repeated

  // Heads of core c: kv[j], and q[g][j] for each group; -1 is a zero head.
  struct Heads {
    std::vector<int64_t> kv;
    std::vector<std::vector<int64_t>> q;
  };
  Heads heads_of(int core) const;
};

HeadSharding shard_heads(int64_t kv_heads, int64_t group, int64_t head_dim, int cores);

}  // namespace gridless::models
