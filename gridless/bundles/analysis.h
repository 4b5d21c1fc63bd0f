// What a schedule costs, and which lines of the kernel's source pay for it.
//
// Cycles are those of the static schedule: no cache, no arbitration, no waiting for copies and
// semaphores is in them. `cycles` counts every loop once, as the listing does; `run_cycles` counts
// a loop's body as often as it runs, where that is known, and is therefore a lower bound of the
// kernel's time when some loop's trips are not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gridless/bundles/listing.h"
#include "gridless/bundles/stalls.h"
#include "gridless/bundles/structure.h"

namespace gridless::bundles {

// Instructions issued, by unit.
using UnitCounts = std::array<int64_t, kUnits>;

struct Cost {
  double cycles = 0, stalls = 0;          // stalls: the part of `cycles` in which nothing is issued
  double run_cycles = 0, run_stalls = 0;  // the same with loops counted
  int64_t bundles = 0;                    // that hold an instruction
  int64_t instructions = 0;
  UnitCounts issued{};
  int64_t spills = 0, fills = 0;
};

// What one source line costs. A cycle in which something is issued is shared equally by the
// instructions of the bundle, an instruction by its lines; an empty cycle is paid by the line that
// waits. So the lines add up to the total.
struct LineCost {
  SourceLoc where;  // column 0; unknown: what the compiler added by itself
  Cost cost;
};

struct Analysis {
  Listing listing;
  Structure structure;
  std::vector<Stall> stalls;

  Cost total;
  std::vector<Cost> regions;                            // of structure.regions, index by index
  std::vector<Cost> loops;                              // of structure.loops, inner loops included
  std::vector<LineCost> lines;                          // most run_cycles first
  std::array<double, kStallCauses> stall_cycles{};      // by cause
  std::array<double, kStallCauses> run_stall_cycles{};  // with loops counted
  bool all_trips_known = true;
};

// `listing` is the schedule. For the code listing the same numbers count bundles of code.
Analysis analyse(Listing listing);

}  // namespace gridless::bundles
