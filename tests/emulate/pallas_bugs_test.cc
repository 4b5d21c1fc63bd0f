// Seeded bugs in Pallas kernels: each found with the kind that its author gave it, no fixed twin
// accused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

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

CheckReport check_file(const std::string& name) {
  auto program = ir::read_program(folder() / name);
  if (!program) throw std::runtime_error(to_string(program.error()));
  const std::vector<std::span<const std::byte>> none(program->call.operands.size());
  return check(program->module, program->call, program->call.cores, none).value();
}

class PallasBug : public testing::TestWithParam<std::string> {};

TEST_P(PallasBug, IsFound) {
  const CheckReport report = check_file(GetParam() + "_bug.mlir");
  const std::string expected = kinds()[GetParam()];
  const Diagnostics found = report.diagnostics();
  const auto it = std::ranges::find_if(found, [&](const Diagnostic& d) {
    return d.kind == expected && d.severity == Diagnostic::Severity::kError;
  });
  ASSERT_NE(it, found.end()) << expected << " expected\n" << to_string(found);
  // Scratch semaphores are arguments: JAX gives those names but no lines.
  if (expected != "semaphore_not_zero") {
    EXPECT_EQ(it->where.file, "bugs.py");
  }
}

TEST_P(PallasBug, TwinIsProved) {
  const CheckReport report = check_file(GetParam() + "_ok.mlir");
  EXPECT_THAT(report.findings, testing::IsEmpty()) << to_string(report.diagnostics());
  EXPECT_TRUE(report.certificate);
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
