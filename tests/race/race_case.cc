#include "tests/race/race_case.h"

#include <fmt/format.h>

#include <optional>

#include "gridless/emulate/explore/explore.h"
#include "tests/emulate/schedule_shows.h"

namespace gridless::lang {

using emulate::CheckReport;

namespace {

// A case's program on its data.
struct Built {
  std::optional<ir::Program> program;
  std::vector<std::vector<std::byte>> data;
  std::vector<std::span<const std::byte>> inputs;

  Built(const RaceCase& c, bool fixed, int& line) {
    Kernel k(c.name, c.cores);
    c.build(k, fixed, line);
    auto finished = k.finish();
    if (!finished) {
      ADD_FAILURE() << to_string(finished.error());
      return;
    }
    program = std::move(*finished);
    data.resize(program->call.operands.size());
    for (size_t i = 0; i < data.size(); ++i) {
      if (program->call.operands[i].name != "table") continue;
      const auto bytes = std::as_bytes(std::span(c.table));
      for (int core = 0; core < c.cores; ++core)
        data[i].insert(data[i].end(), bytes.begin(), bytes.end());
    }
    inputs.assign(data.begin(), data.end());
  }
};

}  // namespace

emulate::CheckReport check_case(const RaceCase& c, bool fixed, int& line) {
  const Built built(c, fixed, line);
  if (!built.program) return {};
  auto report = emulate::check(built.program->module, built.program->call, c.cores, built.inputs,
                               {.max_steps = c.max_steps});
  if (!report) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return std::move(*report);
}

void expect_found(const RaceCase& c, const char* file) {
  int line = 0;
  const CheckReport report = check_case(c, false, line);
  const std::string all = to_string(report.diagnostics());
  bool found = false;
  for (const Diagnostic& d : report.diagnostics()) {
    const bool known = d.kind == c.kind || std::ranges::any_of(c.others, [&](const char* other) {
                         return d.kind == other;
                       });
    EXPECT_TRUE(known) << "unexpected " << d.kind << "\n" << all;
    EXPECT_NE(d.hint, "") << d.str();
    if (d.kind != c.kind) continue;
    EXPECT_EQ(d.severity == Diagnostic::Severity::kWarning, c.warning) << d.str();
    found |= d.where.file == file && d.where.line == line;
  }
  EXPECT_TRUE(found) << c.kind << " at line " << line << "\n" << all;
  EXPECT_EQ(report.clean(), c.warning && c.others.empty());
}

void expect_twin_proved(const RaceCase& c) {
  int line = 0;
  const CheckReport report = check_case(c, true, line);
  EXPECT_THAT(report.findings, testing::IsEmpty()) << to_string(report.diagnostics());
  EXPECT_TRUE(report.certificate) << fmt::format("{}", fmt::join(report.notes, "\n"));
}

namespace {

std::string str(const emulate::ExploreVerdict& verdict) {
  std::string all =
      fmt::format("{} states, {} steps {}\n", verdict.states, verdict.transitions, verdict.stopped);
  for (const emulate::ExploreFinding& f : verdict.findings)
    all += fmt::format("{}: {}: {}\n", f.where().str(), f.kind, f.message);
  return all;
}

// The explorer's kind for one of the checker's; empty: it does not judge that.
std::string explored_kind(const std::string& kind) {
  if (kind == "order_assumption") return "race";
  if (kind == "uninitialised_read" || kind == "unknown_scalar") return "";
  if (kind == "collective_mismatch") return "deadlock";
  return kind;
}

// Of a case with further kinds the explorer sees one or the other: a wait for the wrong bytes
// hangs, or comes too early.
bool sees_one(const emulate::ExploreVerdict& verdict, const RaceCase& c) {
  return verdict.kinds().contains(explored_kind(c.kind)) ||
         std::ranges::any_of(c.others, [&](const char* kind) {
           return verdict.kinds().contains(explored_kind(kind));
         });
}

// What the explorer says of a program with its reduction, which must not change the verdict.
void explore_built(const Built& built, const RaceCase& c, bool fixed) {
  const ir::Program& p = *built.program;
  const auto verdict = emulate::explore(p.module, p.call, c.cores, built.inputs);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_TRUE(verdict->exhausted) << str(*verdict);
  if (fixed || explored_kind(c.kind).empty()) {
    EXPECT_TRUE(verdict->clean()) << str(*verdict);
  } else {
    EXPECT_TRUE(sees_one(*verdict, c)) << c.kind << "\n" << str(*verdict);
  }
  const auto full = emulate::explore(p.module, p.call, c.cores, built.inputs,
                                     {.max_states = 3'000, .reduce = false});
  if (!full->exhausted) return;
  EXPECT_EQ(full->kinds(), verdict->kinds()) << str(*full) << str(*verdict);
  EXPECT_EQ(full->findings.size(), verdict->findings.size()) << str(*full) << str(*verdict);
}

}  // namespace

void expect_schedules_show(const RaceCase& c) {
  int line = 0;
  Built built(c, false, line);
  ASSERT_TRUE(built.program);
  const ir::Program& p = *built.program;
  const auto report = emulate::check(p.module, p.call, c.cores, built.inputs);
  ASSERT_TRUE(report) << report.error().message;
  // Data that can be told apart.
  for (size_t k = 0; k < built.data.size(); ++k) {
    if (!built.data[k].empty()) continue;
    built.data[k].resize(static_cast<size_t>(emulate::tensor_bytes(p.call.operands[k]) * c.cores));
    for (size_t i = 0; i < built.data[k].size(); ++i)
      built.data[k][i] = static_cast<std::byte>(i / 4096 + 1);
  }
  built.inputs.assign(built.data.begin(), built.data.end());
  emulate::expect_schedules_show(*report, p.module, p.call, c.cores, built.inputs);
}

void expect_explored(const RaceCase& c) {
  for (bool fixed : {false, true}) {
    int line = 0;
    Built built(c, fixed, line);
    ASSERT_TRUE(built.program);
    // What nobody gave is zeros, as in the checker.
    const ir::Call& call = built.program->call;
    for (size_t k = 0; k < built.data.size(); ++k)
      if (built.data[k].empty())
        built.data[k].resize(
            static_cast<size_t>(emulate::tensor_bytes(call.operands[k]) * c.cores));
    built.inputs.assign(built.data.begin(), built.data.end());
    explore_built(built, c, fixed);
  }
}

}  // namespace gridless::lang
