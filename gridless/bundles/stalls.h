// Empty cycles of a schedule, and what each run of them waits for.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gridless/bundles/structure.h"

namespace gridless::bundles {

// What the first instruction behind the gap had to wait for.
enum class StallCause {
  kMxuResult,   // a pop: the matrix product is still under way
  kMxuBusy,     // the matrix unit takes its next instruction every few cycles
  kXlu,         // a lane reduction, rotation or transpose
  kEup,         // exp2, reciprocal, ...
  kToScalar,    // a vector element on its way to the scalar unit
  kScalarLoad,  // a scalar from SMEM
  kVector,      // vector arithmetic or a vector load
  kScalar,      // scalar arithmetic
  kBranch,      // delay slots of a branch that nothing could fill
  kOther,       // not found: ordering of memory accesses, semaphores, fixed delays
};
inline constexpr int kStallCauses = 10;
std::string_view cause_name(StallCause cause);  // "mxu_result", "mxu_busy", ...
std::string_view cause_text(StallCause cause);  // in words

struct Stall {
  int begin = 0, end = 0;  // empty bundles [begin, end)
  StallCause cause = StallCause::kOther;
  int waiting = -1;   // the instruction behind the gap; -1 at the end of the listing
  int producer = -1;  // the instruction it waits for, when known
  int cycles() const { return end - begin; }
};

// Every run of empty bundles that lies in one region, in order. Only for the schedule: the code
// listing has no empty cycles.
std::vector<Stall> find_stalls(const Listing& listing, const Structure& structure);

}  // namespace gridless::bundles
