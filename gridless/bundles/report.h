// Everything that is known about one compiled kernel, for people and for scripts.
// docs/bundles.md documents the JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gridless/bundles/analysis.h"
#include "gridless/bundles/critical_path.h"
#include "gridless/bundles/dump.h"

namespace gridless::bundles {

inline constexpr int kBundleBytes = 64;  // of instruction memory

struct Report {
  std::string kernel;
  // Of the schedule. When a dump has only the code: of the code, without empty cycles, so that its
  // "cycles" are bundles.
  Analysis analysis;
  bool has_schedule = true;
  // Bundles of code per source line and in all; nothing when the dump has no code.
  std::optional<Analysis> code;
  std::vector<CriticalPath> critical_paths;
  VmemUse vmem;
  std::optional<int64_t> estimated_cycles;  // libtpu's own simulation, copies included

  // The placed critical path that costs most: its cycles times the runs of the loops around it.
  // Null when there is none.
  const CriticalPath* costliest_path() const;
  int64_t code_bytes() const;  // 0 when unknown
};

// An error when a text of the dump is no listing, or the dump has none.
Result<Report> make_report(const Dump& dump);

// "kernels/ring.cc:12", or "(compiler)" for what belongs to no source line.
std::string place_name(const SourceLoc& where);

// At most `rows` rows per table.
std::string to_text(const Report& report, int rows);
nlohmann::ordered_json to_json(const Report& report);
// One page without scripts and without anything from outside.
std::string to_html(const Report& report);

}  // namespace gridless::bundles
