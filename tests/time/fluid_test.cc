#include "gridless/time/fluid.h"

#include <gtest/gtest.h>

#include <limits>

namespace gridless::time {
namespace {

constexpr double kFree = 1e18;

TEST(Fluid, OneFlowTakesItsBytesOverTheRate) {
  Fluid fluid;
  const int memory = fluid.add_resource(4);
  const Fluid::Flow f = fluid.start(10, 100, {memory}, kFree);
  EXPECT_DOUBLE_EQ(fluid.next(), 35);
  EXPECT_EQ(fluid.finish(), f);
  EXPECT_EQ(fluid.next(), std::numeric_limits<double>::infinity());
}

// 100 bytes from 0, 100 from 10, rate 4: until 10 the first has 60 left; both at 2 until 40; the
// second has 40 left then, at 4 until 50.
TEST(Fluid, TwoFlowsShareEvenlyAndTheRestSpeedsUp) {
  Fluid fluid;
  const int memory = fluid.add_resource(4);
  const Fluid::Flow a = fluid.start(0, 100, {memory}, kFree);
  EXPECT_DOUBLE_EQ(fluid.next(), 25);
  const Fluid::Flow b = fluid.start(10, 100, {memory}, kFree);
  EXPECT_DOUBLE_EQ(fluid.next(), 40);
  EXPECT_EQ(fluid.finish(), a);
  EXPECT_DOUBLE_EQ(fluid.next(), 50);
  EXPECT_EQ(fluid.finish(), b);
}

TEST(Fluid, AFlowIsAsFastAsItsSlowestResourceAndItsOwnLimit) {
  Fluid fluid;
  const int wide = fluid.add_resource(10), narrow = fluid.add_resource(2);
  fluid.start(0, 20, {wide, narrow}, kFree);
  EXPECT_DOUBLE_EQ(fluid.next(), 10);
  const Fluid::Flow limited = fluid.start(0, 5, {wide}, 1);
  EXPECT_DOUBLE_EQ(fluid.next(), 5);
  EXPECT_EQ(fluid.finish(), limited);
}

TEST(Fluid, TwoSharesOfOneResourceHalveTheRate) {
  Fluid fluid;
  const int memory = fluid.add_resource(4);
  fluid.start(0, 100, {memory, memory}, kFree);
  EXPECT_DOUBLE_EQ(fluid.next(), 50);
}

TEST(Fluid, EqualFlowsEndTogetherInTheOrderOfTheirStarts) {
  Fluid fluid;
  const int link = fluid.add_resource(1);
  std::vector<Fluid::Flow> started, ended;
  for (int k = 0; k < 4; ++k) started.push_back(fluid.start(0, 10, {link}, kFree));
  for (int k = 0; k < 4; ++k) {
    EXPECT_DOUBLE_EQ(fluid.next(), 40);
    ended.push_back(fluid.finish());
  }
  EXPECT_EQ(ended, started);
}

// Whatever the order of starts, a resource that is never idle moves its rate times the time.
TEST(Fluid, ABusyResourceLosesNothing) {
  Fluid fluid;
  const int memory = fluid.add_resource(3);
  double bytes = 0, now = 0;
  for (int k = 0; k < 50; ++k) {
    const double n = 100 + 37 * (k % 7);
    fluid.start(0.5 * k, n, {memory}, kFree);
    bytes += n;
  }
  while (fluid.under_way() > 0) {
    now = fluid.next();
    fluid.finish();
  }
  EXPECT_NEAR(now, bytes / 3, 1e-6);
}

}  // namespace
}  // namespace gridless::time
