// Two compilations of a kernel side by side.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gridless/bundles/report.h"

namespace gridless::bundles {

// One number of both; NaN where a side does not have it.
struct Change {
  std::string name;
  double before = 0, after = 0;
  double by() const;  // an absent side counts as 0
};

struct Diff {
  std::string before, after;   // kernels
  std::vector<Change> totals;  // cycles, empty cycles, run cycles, code bytes, spills, ...
  std::vector<Change> units;   // instructions issued
  std::vector<Change> causes;  // empty cycles by cause, loops counted
  std::vector<Change> lines;   // run cycles by source line, largest change first; equal ones too
  std::vector<Change> loops;   // cycles of one trip, by source line; the n-th loop of a line in
                               // one is the n-th in the other
};

Diff compare(const Report& before, const Report& after);
std::string to_text(const Diff& diff, int rows);
nlohmann::ordered_json to_json(const Diff& diff);

}  // namespace gridless::bundles
