// Regions: a kernel's flattened program cut into straight lines, and the cycles of each.
//
// A region is code between places where control flow meets or parts, or where the core may wait:
// the unit in which the compiler schedules. Within it copies and signals happen at cycles of their
// own, so a region is passed in stretches, each ending at an event or at the region's end. A mark
// in the program (Instr::Kind::kMark) stands before each stretch: whoever runs the program lets the
// core's clock go on by the stretch's cycles there.
#pragma once

#include <functional>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/emulate/kernel.h"
#include "gridless/time/region_schedule.h"

namespace gridless::time {

struct Stretch {
  Cycles cycles;
  double delay_ns = 0;  // of tpu.delay
  int region = 0;
};

struct Region {
  SourceLoc first, last;  // of its operations
  int cycles = 0;         // of one passage, without waiting
  int operations = 0;
  bool vector = false;  // some of them are on vectors
  int loop = -1;        // innermost, of the program's loops
  bool waits = false;   // ends where the core may wait
  SourceLoc wait;       // of the operation that it may wait at
};

struct Regions {
  std::vector<Stretch> stretches;  // by mark
  std::vector<Region> regions;
  std::vector<SourceLoc> loops;  // of the program's loops
  Diagnostics warnings;          // operations whose costs are guessed, one each
};

// Operations that are taken to cost nothing ("what if").
using IsFree = std::function<bool(const ir::Op&)>;

// Costs the kernel's body and puts the marks into it. Before drop_vectors().
Regions cut_into_regions(emulate::Kernel& kernel, const IsFree& is_free = nullptr);

}  // namespace gridless::time
