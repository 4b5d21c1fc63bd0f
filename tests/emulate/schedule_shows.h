// Every finding that depends on timing has a schedule, which survives its file, can be followed,
// and shows the fault: the run says itself what met what, at the lines of the finding.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gridless/emulate/check/check.h"
#include "gridless/emulate/rerun.h"

namespace gridless::emulate {

inline bool depends_on_timing(const std::string& kind) {
  for (const char* k : {"race", "order_assumption", "use_after_scope", "dma_in_flight_at_end",
                        "missing_barrier", "timing_dependent_read", "deadlock"})
    if (kind == k) return true;
  return false;
}

inline void expect_shown(const Schedule& s, const Rerun& r) {
  const std::string kind = s.kind == "order_assumption" ? "race" : s.kind;
  std::string all;
  bool seen = false;
  for (const ExploreFinding& f : r.seen) {
    all += f.kind + ": " + f.message + "\n";
    if (f.kind != kind) continue;
    // A race names both of its lines; the finding's is one of them.
    seen |= kind != "race" || (f.message.find(s.location) != std::string::npos &&
                               f.message.find(f.first->loc.str()) != std::string::npos);
  }
  if (kind == "deadlock") {
    EXPECT_FALSE(r.run.report.finished);
    return;
  }
  // A count is no copy: what is seen is its value.
  if (kind == "timing_dependent_read")
    seen |= r.read && r.read->find(", not ") != std::string::npos;
  EXPECT_TRUE(seen) << s.kind << " at " << s.location << " is not seen\n"
                    << all << r.read.value_or("");
}

inline void expect_schedules_show(const CheckReport& report, const ir::Module& module,
                                  const ir::Call& call, int cores,
                                  std::span<const std::span<const std::byte>> inputs) {
  for (const Finding& f : report.findings) {
    const Diagnostic& d = f.diagnostic;
    if (!depends_on_timing(d.kind)) continue;
    // Where the compiler puts a barrier before the kernel, no timing shows it.
    if (d.kind == "missing_barrier" && d.severity == Diagnostic::Severity::kWarning) continue;
    ASSERT_TRUE(f.schedule) << d.str();
    const auto file = parse_schedules(
        to_json(ScheduleFile{.target = "test", .cores = cores, .schedules = {*f.schedule}}));
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_EQ(file->schedules.size(), 1u);
    const Schedule& s = file->schedules[0];
    const auto again = rerun(module, call, cores, inputs, s);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_TRUE(again->followed) << d.str() << again->not_followed;
    expect_shown(s, *again);
  }
}

}  // namespace gridless::emulate
