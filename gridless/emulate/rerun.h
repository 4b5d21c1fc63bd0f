// Rerun: a schedule (schedule.h) on real values, beside a run in program order.
//
// Both runs are watched as the explorer watches (explore/watch.h), so what is wrong with a timing
// is said by the run itself: which access met a copy that was under way, what a scope ended under.
// The two are then compared: the results, and what the event at the end of the hold saw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gridless/emulate/emulator.h"
#include "gridless/emulate/explore/explore.h"
#include "gridless/emulate/schedule.h"

namespace gridless::emulate {

struct Difference {
  int result = 0;  // of the call
  int core = 0;
  int64_t elements = 0;             // that differ
  int64_t first = 0;                // row-major index of the first
  std::string here, program_order;  // its value
};

struct Rerun {
  CallResult run;  // under the schedule
  CallResult program_order;
  bool followed = false;                // the schedule could be followed to its end
  std::string not_followed;             // else why not
  std::vector<ExploreFinding> seen;     // faults of this timing
  std::optional<std::string> read;      // by the event at the end of the hold, or the held one
  std::vector<Difference> differences;  // of results
};

// Errors: as run_call. The number of cores is the schedule file's.
Result<Rerun> rerun(const ir::Module& module, const ir::Call& call, int cores,
                    std::span<const std::span<const std::byte>> inputs, const Schedule& schedule,
                    const Options& options = {});

}  // namespace gridless::emulate
