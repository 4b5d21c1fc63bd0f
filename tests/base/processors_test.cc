#include "gridless/base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace gridless {
namespace {

TEST(Processors, AtLeastOneAndNoMoreThanTheSystemHas) {
  EXPECT_GE(physical_processors(), 1);
  EXPECT_LE(physical_processors(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(Processors, OnlyThoseThisThreadMayRunOnCount) {
  std::jthread([] {  // the mask of a thread ends with it
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(physical_processors(), 1);
  });
}

}  // namespace
}  // namespace gridless
