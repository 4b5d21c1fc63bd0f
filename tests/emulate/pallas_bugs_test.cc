// Seeded bugs in Pallas kernels: each found with the kind that its author gave it, no fixed twin
// accused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "gridless/emulate/check/check.h"
#include "gridless/ir/read_program.h"

namespace gridless::emulate {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(GRIDLESS_TEST_DATA) / "pallas_bugs"; }

nlohmann::json kinds() {
  std::ifstream in(folder() / "list.json");
  return nlohmann::json::parse(in);
}

CheckReport check_file(const fs::path& file) {
  auto program = ir::read_program(file);
  if (!program) throw std::runtime_error(to_string(program.error()));
  const std::vector<std::span<const std::byte>> none(program->call.operands.size());
  // Enough for all of them, and soon reached by a loop without end.
  const CheckOptions options{.max_steps = 1'000'000};
  return check(program->module, program->call, program->call.cores, none, options).value();
}

class PallasBug : public testing::TestWithParam<std::string> {};

TEST_P(PallasBug, IsFound) {
  const CheckReport report = check_file(folder() / (GetParam() + "_bug.mlir"));
  const std::string expected = kinds()[GetParam()];
  const Diagnostics found = report.diagnostics();
  // Right under a stated order of copies is no error, and no proof.
  const bool warning = expected == "order_assumption";
  const auto it = std::ranges::find_if(found, [&](const Diagnostic& d) {
    return d.kind == expected && (d.severity == Diagnostic::Severity::kWarning) == warning;
  });
  ASSERT_NE(it, found.end()) << expected << " expected\n" << to_string(found);
  EXPECT_FALSE(report.certificate);
  // Scratch is an argument, and so are the blocks of a grid: JAX gives them a name but no line. Nor
  // has what emit_pipeline makes one.
  const std::set<std::string> no_line = {"semaphore_not_zero", "capacity",
                                         "in_place_shifted_window", "index_map_beyond",
                                         "pipeline_reads_under_copy"};
  const bool has_line = !no_line.contains(expected) && !no_line.contains(GetParam());
  if (has_line) {
    EXPECT_THAT(it->where.file, testing::AnyOf("bugs.py", "patterns.py", "mixed.py"));
  }
}

TEST_P(PallasBug, TwinIsProved) {
  const CheckReport report = check_file(folder() / (GetParam() + "_ok.mlir"));
  EXPECT_THAT(report.findings, testing::IsEmpty()) << to_string(report.diagnostics());
  EXPECT_TRUE(report.certificate);
}

// A kernel that communicates and has no collective_id rests on the barrier that the compiler puts
// before it.
TEST(CompilersBarrier, IsAWarningAndNoProofAndWithoutItAnError) {
  const auto run = [](const char* name) { return check_file(folder() / name); };
  const CheckReport with = run("compilers_barrier_ok.mlir"),
                    without = run("compilers_barrier_bug.mlir");
  for (const CheckReport* report : {&with, &without}) {
    EXPECT_FALSE(report->certificate);
    ASSERT_FALSE(report->findings.empty());
    for (const Diagnostic& d : report->diagnostics())
      EXPECT_EQ(d.kind, "missing_barrier") << d.str();
  }
  EXPECT_TRUE(with.clean()) << to_string(with.diagnostics());
  EXPECT_FALSE(without.clean());
}

// What a result holds where nothing was stored is nobody's value, but seldom meant.
TEST(UnwrittenBlock, IsAWarning) {
  const CheckReport report = check_file(folder() / "odd_result_blocks_not_written_bug.mlir");
  EXPECT_TRUE(report.certificate) << to_string(report.diagnostics());
  ASSERT_EQ(report.findings.size(), 1u) << to_string(report.diagnostics());
  const Diagnostic& d = report.findings[0].diagnostic;
  EXPECT_EQ(d.kind, "uninitialised_read");
  EXPECT_THAT(d.message, testing::HasSubstr("block 1x0 of result 0"));
  EXPECT_THAT(check_file(folder() / "odd_result_blocks_not_written_ok.mlir").findings,
              testing::IsEmpty());
}

// A block that the pipeline may move at another time than a run in program order does.
TEST(BlocksOfAGrid, AreNamedWithTheStepsThatMeet) {
  const std::string windows =
      to_string(check_file(folder() / "in_place_shifted_window_bug.mlir").diagnostics());
  EXPECT_THAT(windows,
              testing::AllOf(
                  testing::HasSubstr("[8:16, 0:128] of the tensor of o, which the grid's pipeline "
                                     "writes back after step (0)"),
                  testing::HasSubstr("of the tensor of x, which the grid's pipeline fetches for "
                                     "step (1)")));
  EXPECT_THAT(
      to_string(check_file(folder() / "block_changed_after_its_fetch_bug.mlir").diagnostics()),
      testing::HasSubstr("a block may be fetched before the write to it is over"));
}

// The examples of docs/checking.md, with the lines that it names.
TEST(ChecksOfTheDocs, NameTheirLines) {
  const auto lines = [](const char* name) {
    const CheckReport report =
        check_file(fs::path(GRIDLESS_TEST_DATA) / "checking" / (std::string(name) + ".mlir"));
    std::string all = to_string(report.diagnostics());
    EXPECT_FALSE(report.clean());
    return all;
  };
  using testing::HasSubstr;
  EXPECT_THAT(lines("slots"),
              testing::AllOf(HasSubstr("slots.py:16: error: a read may come before the write"),
                             HasSubstr("the copy that core 0 starts at slots.py:10"),
                             HasSubstr("the copy that core 0 starts at slots.py:14"),
                             HasSubstr("only after the wait at slots.py:9")));
  EXPECT_THAT(lines("send"), HasSubstr("send.py:14: error: core 0 may write"));
  EXPECT_THAT(lines("ring"),
              testing::AllOf(HasSubstr("ring.py:13: error: deadlock"),
                             HasSubstr("1 by core 1 at ring.py:12, 1 by core 3 at ring.py:11")));
}

std::vector<std::string> names() {
  const nlohmann::json list = kinds();
  std::vector<std::string> out;
  for (const auto& [name, kind] : list.items()) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Pallas, PallasBug, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gridless::emulate
