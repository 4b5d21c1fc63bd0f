// Cycles that libtpu keeps between instructions of TPU v7, as its schedules show them: the smallest
// distances over several hundred listings of libtpu 0.0.51. They explain empty cycles here; the
// costs of operations in time predictions are measured elsewhere.
#pragma once

#include <string_view>

namespace gridless::bundles {

// From an instruction to the first one that can use its result. For the units that deliver through
// a queue (MXU, XLU, EUP) to the pop.
int result_latency(std::string_view opcode);

// Between two instructions of one MXU or XLU.
inline constexpr int kUnitInterval = 4;

}  // namespace gridless::bundles
