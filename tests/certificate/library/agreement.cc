#include "tests/certificate/library/agreement.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/base/check.h"
#include "gridless/emulate/check/check.h"
#include "gridless/emulate/explore/explore.h"

namespace gridless::certificate {

namespace {

bool shown_by_timings(const std::set<std::string>& kinds) {
  return std::ranges::any_of(kinds, [](const std::string& kind) {
    return kind != "uninitialised_read" && kind != "wait_bytes_mismatch";
  });
}

}  // namespace

Comparison compare(const ir::Program& program, int cores,
                   const std::vector<std::span<const std::byte>>& inputs, const Limits& limits) {
  Comparison out;
  const auto report =
      emulate::check(program.module, program.call, cores, inputs, {.max_steps = limits.steps});
  GRIDLESS_CHECK(report, "{}", report.error().message);
  for (const Diagnostic& d : report->diagnostics()) out.found.insert(d.kind);
  const auto verdict = emulate::explore(program.module, program.call, cores, inputs,
                                        {.max_states = limits.states, .max_steps = limits.steps});
  GRIDLESS_CHECK(verdict, "{}", verdict.error().message);
  out.explored = verdict->kinds();
  const bool proved = report->certificate && out.found.empty();
  if (!out.explored.empty()) {
    out.agreement = proved ? Agreement::kUnsound : Agreement::kFault;
  } else if (!verdict->exhausted) {
    out.agreement = Agreement::kOpen;
  } else {
    out.agreement = out.found.empty()             ? Agreement::kClean
                    : shown_by_timings(out.found) ? Agreement::kFlagged
                                                  : Agreement::kGarbage;
  }
  if (out.agreement != Agreement::kUnsound && out.agreement != Agreement::kFlagged) return out;
  out.details = to_string(report->diagnostics());
  for (const emulate::ExploreFinding& f : verdict->findings)
    out.details += fmt::format("explored: {}: {}: {}\n", f.where().str(), f.kind, f.message);
  return out;
}

void Tally::add(const Comparison& c) {
  ++programs;
  if (c.explored.contains("deadlock")) {
    ++deadlock;
  } else if (c.explored.contains("race")) {
    ++racy;
  } else if (!c.explored.empty()) {
    ++other;
  } else if (c.agreement == Agreement::kClean || c.agreement == Agreement::kFlagged) {
    ++clean;
  }
  unsound += c.agreement == Agreement::kUnsound;
  flagged += c.agreement == Agreement::kFlagged;
  garbage += c.agreement == Agreement::kGarbage;
  open += c.agreement == Agreement::kOpen;
}

std::string head() {
  return fmt::format("{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "programs",
                     "all", "deadlock", "racy", "other", "clean", "garbage", "unsound", "flagged",
                     "open");
}

std::string row(const Tally& t) {
  return fmt::format("{:<24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", t.name,
                     t.programs, t.deadlock, t.racy, t.other, t.clean, t.garbage, t.unsound,
                     t.flagged, t.open);
}

}  // namespace gridless::certificate
