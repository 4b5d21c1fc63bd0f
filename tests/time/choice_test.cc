// The choice of an algorithm (a table in the blocks) against the model that it was made with.
#include <gtest/gtest.h>

#include <algorithm>

#include "bench/collective_time.h"
#include "gridless/blocks/collectives/choose.h"

namespace gridless::time {
namespace {

using blocks::Algorithm;
using blocks::CollectiveKind;

TEST(Choice, IsWithinATenthOfTheFastest) {
  const chips::TimeParameters nominal;
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kAllReduce,
                                    CollectiveKind::kAllToAll, CollectiveKind::kBroadcast})
    for (const int cores : {2, 6, 8})
      for (const int64_t panels : {1, 12, 256}) {
        bench::CollectiveCall call{.kind = kind, .cores = cores, .panels = panels};
        double ns[3], best = 1e18;
        for (int a = 0; a < 3; ++a) {
          call.algorithm = static_cast<Algorithm>(a);
          ns[a] = bench::call_ns(call, nominal);
          best = std::min(best, ns[a]);
        }
        const Algorithm chosen = blocks::choose(kind, cores, call.part_bytes());
        EXPECT_LE(ns[static_cast<int>(chosen)], 1.1 * best)
            << blocks::name_of(kind) << " on " << cores << " cores, " << call.part_bytes()
            << " bytes: " << blocks::name_of(chosen);
      }
}

TEST(Choice, KnowsEveryKindAndSize) {
  for (int kind = 0; kind < 5; ++kind)
    for (int cores = 1; cores <= 256; ++cores)
      for (const int64_t bytes : {int64_t{0}, int64_t{4096}, int64_t{1} << 40}) {
        const Algorithm a = blocks::choose(static_cast<CollectiveKind>(kind), cores, bytes);
        if (cores == 1) {
          EXPECT_EQ(a, Algorithm::kDirect);
        }
      }
  // Small messages: as few as possible one after another. Large ones: as few bytes as possible
  // over the links.
  EXPECT_EQ(blocks::choose(CollectiveKind::kAllReduce, 8, 4096), Algorithm::kDirect);
  EXPECT_NE(blocks::choose(CollectiveKind::kAllReduce, 8, 1 << 20), Algorithm::kDirect);
}

}  // namespace
}  // namespace gridless::time
