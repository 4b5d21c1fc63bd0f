#include "gridless/base/read_bandwidth.h"

#include <gtest/gtest.h>

#include <chrono>

namespace gridless {
namespace {

// Small and short: the tests are about the arithmetic, not about this machine.
ReadBandwidthOptions quick(int threads) {
  return {.threads = threads, .seconds = 0.1, .buffer_bytes = 64 << 20};
}

TEST(ReadBandwidth, IsWhatSomeMachineCouldReach) {
  const Result<ReadBandwidth> one = measure_read_bandwidth(quick(1));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->threads, 1);
  EXPECT_EQ(one->buffer_bytes, std::size_t{64} << 20);
  EXPECT_GT(one->bytes_per_second, 0.05e9);  // a sanitized build on a busy machine
  EXPECT_LT(one->bytes_per_second, 2000e9);
}

TEST(ReadBandwidth, SecondThreadDoesNotSlowTheFirst) {
  const Result<ReadBandwidth> one = measure_read_bandwidth(quick(1));
  const Result<ReadBandwidth> two = measure_read_bandwidth(quick(2));
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  // Two threads that share one processor still read as fast as one; a fifth is left for the noise.
  EXPECT_GE(two->bytes_per_second, 0.8 * one->bytes_per_second);
}

TEST(ReadBandwidth, SmallBufferIsRoundedUpToAChunkPerThread) {
  const Result<ReadBandwidth> result =
      measure_read_bandwidth({.threads = 3, .seconds = 0.01, .buffer_bytes = 1});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->buffer_bytes, std::size_t{3} * 128 << 10);
}

TEST(ReadBandwidth, MoreMemoryThanThereIsIsAMachineError) {
  const Result<ReadBandwidth> result =
      measure_read_bandwidth({.threads = 1, .seconds = 0.01, .buffer_bytes = std::size_t{1} << 60});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::kMachine);
}

TEST(ReadBandwidth, IsMeasuredOncePerProcess) {
  const Result<ReadBandwidth> first = read_bandwidth(1);
  ASSERT_TRUE(first) << first.error().message;
  const auto start = std::chrono::steady_clock::now();
  const Result<ReadBandwidth> second = read_bandwidth(1);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(second);
  EXPECT_EQ(second->bytes_per_second, first->bytes_per_second);
  EXPECT_LT(seconds.count(), 0.1);  // a measurement reads for 0.5 s
}

}  // namespace
}  // namespace gridless
