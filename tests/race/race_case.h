// One program per kind of finding, with its fixed twin: the same builder with `fixed` set. The line
// that the finding must name is noted by HERE.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "gridless/emulate/check/check.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"

namespace gridless::lang {

struct RaceCase {
  const char* name;
  const char* kind;
  int cores;
  void (*build)(Kernel& k, bool fixed, int& line);
  std::vector<int32_t> table = {};  // the operand "table", if the kernel has one
  bool warning = false;
  std::vector<const char*> others = {};  // further kinds that are right too
  int64_t max_steps = emulate::CheckOptions().max_steps;
};

inline void PrintTo(const RaceCase& c, std::ostream* out) { *out << c.name; }

// NOLINTNEXTLINE: a macro because __LINE__ must be that of the statement behind it
#define HERE line = __LINE__;

// The report of the buggy program (fixed: its twin), and the line noted by HERE.
emulate::CheckReport check_case(const RaceCase& c, bool fixed, int& line);

void expect_found(const RaceCase& c, const char* file);
void expect_twin_proved(const RaceCase& c);
// What the buggy program's schedules show when they are run.
void expect_schedules_show(const RaceCase& c);
// The explorer, which judges real executions one by one, says the same of both.
void expect_explored(const RaceCase& c);

// A suite of a table of cases.
#define RACE_SUITE(suite, table)                                                                 \
  class suite : public testing::TestWithParam<RaceCase> {};                                      \
  TEST_P(suite, IsFoundAtItsLine) { expect_found(GetParam(), __FILE__); }                        \
  TEST_P(suite, FixedTwinHasACertificate) { expect_twin_proved(GetParam()); }                    \
  TEST_P(suite, SchedulesShowTheFault) { expect_schedules_show(GetParam()); }                    \
  TEST_P(suite, ExplorerAgrees) {                                                                \
    const RaceCase& c = GetParam();                                                              \
    if (c.cores > 3 || c.kind == std::string("capacity") || c.kind == std::string("step_limit")) \
      GTEST_SKIP() << "too many timings, or too much memory, for a unit test";                   \
    expect_explored(GetParam());                                                                 \
  }                                                                                              \
  INSTANTIATE_TEST_SUITE_P(Each, suite, testing::ValuesIn(table),                                \
                           [](const auto& info) { return std::string(info.param.name); })

}  // namespace gridless::lang
