// The chip table: numbers that must agree with each other.
#include "gridless/chips/tpu7x.h"

#include <gtest/gtest.h>

#include <set>

namespace gridless::chips {
namespace {

TEST(Tpu7x, EveryFactSaysWhereItIsFrom) {
  std::set<std::string_view> names;
  for (const FactRow& row : tpu7x_facts()) {
    EXPECT_GT(row.value, 0) << row.name;
    EXPECT_FALSE(row.note.empty()) << row.name;
    EXPECT_NE(source_name(row.source), "unknown") << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_TRUE(names.contains("vmem_usable_bytes"));
}

TEST(Tpu7x, UsableMemoryIsLessThanThereIs) {
  EXPECT_LT(kTpu7x.vmem_usable_bytes, kTpu7x.vmem_bytes);
  EXPECT_LT(kTpu7x.smem_usable_bytes, kTpu7x.smem_bytes);
  EXPECT_LT(kTpu7x.hbm_usable_bytes, kTpu7x.hbm_bytes);
  EXPECT_LT(kTpu7x.semaphores_usable, kTpu7x.semaphores);
  EXPECT_EQ(kTpu7x.hbm_bytes, int64_t{192} * 1024 * kMiB / kTpu7x.cores_per_chip);
  EXPECT_NEAR(kTpu7x.hbm_usable_bytes, 94.74 * 1024 * kMiB, 0.01 * 1024 * kMiB);
}

// An MXU takes two rows of 256 per cycle, so it does 2 * 256 * 256 multiply-adds per cycle.
TEST(Tpu7x, ClockTimesMxusIsThePeak) {
  const double per_cycle = 2.0 * kTpu7x.mxu_size * kTpu7x.mxu_size * 2;  // FLOP of one MXU
  EXPECT_NEAR(per_cycle * kTpu7x.mxus * kTpu7x.clock_hz, kTpu7x.bf16_flops,
              0.001 * kTpu7x.bf16_flops);
  EXPECT_DOUBLE_EQ(kTpu7x.fp8_flops, 2 * kTpu7x.bf16_flops);
}

TEST(Tpu7x, MeasuredRatesStayBelowTheSpecification) {
  EXPECT_LT(kTpu7x.hbm_stream_bytes_per_second, kTpu7x.hbm_copy_bytes_per_second);
  EXPECT_LT(kTpu7x.hbm_copy_bytes_per_second, kTpu7x.hbm_bytes_per_second);
  EXPECT_LT(kTpu7x.ici_peer_bytes_per_second, kTpu7x.ici_link_bytes_per_second);
}

}  // namespace
}  // namespace gridless::chips
