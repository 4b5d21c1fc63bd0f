// How fast this machine reads memory: the bound that every decode speed is a fraction of.
#pragma once

#include <cstddef>

#include "gridless/base/error.h"

namespace gridless {

struct ReadBandwidthOptions {
  int threads = 1;
  // Time spent reading; filling the buffer comes on top (about 0.1 s). Up to three times that long
  // where the threads did not run at once.
  double seconds = 0.5;
  // 0: twice the last-level cache, but 512 MB to 1 GB, and at most a quarter of the free memory.
  std::size_t buffer_bytes = 0;
};

struct ReadBandwidth {
  double bytes_per_second = 0;  // all threads together
  int threads = 0;
  std::size_t buffer_bytes = 0;
  // All threads were running in the window taken. False: the machine never let them, and the rate
  // is the best of one thread times the threads, which memory may not reach.
  bool together = true;
};

// Streams through a buffer, each thread over its own part, and takes the best window of 2 ms in
// which all threads ran throughout. Whole passes would measure how busy the machine is: a preempted
// thread halves them, while windows short enough to fall between preemptions repeat within a few
// percent. So this is the rate of the quiet machine, never an average. Memory that cannot be had is
// a machine error.
Result<ReadBandwidth> measure_read_bandwidth(const ReadBandwidthOptions& options);

// The same with the default options, measured once per process for each thread count. Thread-safe;
// a second caller waits for the first.
Result<ReadBandwidth> read_bandwidth(int threads);

}  // namespace gridless
