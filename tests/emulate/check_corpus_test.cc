// Verdicts of the checker on kernels that JAX wrote: the clean ones clean, each seeded bug found.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "gridless/base/mapped_file.h"
#include "gridless/emulate/check/check.h"
#include "gridless/ir/read_program.h"
#include "gridless/weights/safetensors.h"
#include "tests/emulate/schedule_shows.h"

namespace gridless::emulate {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json meta_of(const std::string& name) {
  return json::parse(
      read_text_file(fs::path(GRIDLESS_TEST_DATA) / "corpus" / name / "meta.json").value());
}

struct Case {
  ir::Module module;
  ir::Call call;
  std::string data;
  std::vector<std::span<const std::byte>> inputs;

  // prefix: "in", or "alt_in" for the operands that show an input-dependent bug.
  explicit Case(const std::string& name, const std::string& prefix = "in") {
    const fs::path dir = fs::path(GRIDLESS_TEST_DATA) / "corpus" / name;
    auto program = ir::read_program(dir / "module.mlirbc");
    if (!program) throw std::runtime_error(to_string(program.error()));
    module = std::move(program->module);
    call = std::move(program->call);
    data = read_text_file(dir / "data.safetensors").value();
    const auto tensors =
        weights::Safetensors::parse({reinterpret_cast<const uint8_t*>(data.data()), data.size()});
    for (size_t k = 0; k < call.operands.size(); ++k) {
      const auto* t = tensors->find(fmt::format("{}{}", prefix, k));
      if (!t) throw std::runtime_error("no input");
      inputs.emplace_back(reinterpret_cast<const std::byte*>(t->stored.data()), t->stored.size());
    }
  }

  CheckReport check_it(const CheckOptions& options = {}) const {
    return check(module, call, call.cores, inputs, options).value();
  }
};

std::vector<std::string> names(bool clean) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(fs::path(GRIDLESS_TEST_DATA) / "corpus")) {
    if (!fs::exists(entry.path() / "meta.json")) continue;
    if ((meta_of(entry.path().filename())["verdict"] == "clean") == clean)
      out.push_back(entry.path().filename());
  }
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> errors(const CheckReport& report) {
  std::vector<std::string> out;
  for (const Diagnostic& d : report.diagnostics())
    if (d.severity == Diagnostic::Severity::kError) out.push_back(d.kind);
  return out;
}

std::string why(const CheckReport& report) {
  std::string out = to_string(report.diagnostics());
  for (const std::string& n : report.notes)
    if (!n.starts_with("assumes")) out += "\n" + n;
  return out;
}

class CheckedKernel : public testing::TestWithParam<std::string> {};

TEST_P(CheckedKernel, HasACertificate) {
  const Case c(GetParam());
  const CheckReport report = c.check_it();
  EXPECT_THAT(report.findings, testing::IsEmpty()) << why(report);
  // The experts of b4 are chosen by vector ops: right for this data, but no proof for all.
  EXPECT_EQ(report.certificate, GetParam() != "b4_moe_topk_gather") << why(report);
}

// What the scalars do is all the same; only what vectors decide is unknown.
TEST_P(CheckedKernel, WithoutVectorsHasTheSameEvents) {
  const Case c(GetParam());
  const CheckReport report = c.check_it({.scalars_only = true});
  if (GetParam() == "b4_moe_topk_gather") {
    EXPECT_THAT(report.findings, testing::Not(testing::IsEmpty()));
    for (const Diagnostic& d : report.diagnostics()) EXPECT_EQ(d.kind, "unknown_scalar") << d.str();
    EXPECT_FALSE(report.certificate);
    return;
  }
  EXPECT_THAT(report.findings, testing::IsEmpty()) << why(report);
  EXPECT_TRUE(report.certificate) << why(report);
  EXPECT_EQ(report.events, c.check_it().events);
}

INSTANTIATE_TEST_SUITE_P(Corpus, CheckedKernel, testing::ValuesIn(names(true)),
                         [](const auto& info) { return info.param; });

// The corpus has names of its own for some kinds.
std::string cli_kind(const std::string& verdict) {
  if (verdict == "oob") return "out_of_bounds";
  if (verdict == "uninit") return "uninitialised_read";
  if (verdict == "sem_nonzero") return "semaphore_not_zero";
  if (verdict == "dma_in_flight") return "dma_in_flight_at_end";
  if (verdict == "missing_entry_barrier") return "missing_barrier";
  return verdict;
}

class CheckedBug : public testing::TestWithParam<std::string> {};

TEST_P(CheckedBug, IsFoundWithItsKind) {
  const json meta = meta_of(GetParam());
  const bool dependent = meta.value("input_dependent", false);
  const Case c(GetParam(), dependent ? "alt_in" : "in");
  const CheckReport report = c.check_it();
  EXPECT_THAT(errors(report), testing::Contains(cli_kind(meta["verdict"]))) << why(report);
  EXPECT_FALSE(report.certificate);
  if (dependent) {
    const CheckReport silent = Case(GetParam()).check_it();
    EXPECT_THAT(silent.findings, testing::IsEmpty()) << why(silent);
  }
}

TEST_P(CheckedBug, IsFoundWithoutVectors) {
  const json meta = meta_of(GetParam());
  const Case c(GetParam(), meta.value("input_dependent", false) ? "alt_in" : "in");
  const CheckReport report = c.check_it({.scalars_only = true});
  const std::string kind = cli_kind(meta["verdict"]);
  if (kind == "uninitialised_read") {  // whether it matters is for a run with values
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings[0].diagnostic.kind, kind);
    return;
  }
  EXPECT_THAT(errors(report), testing::Contains(kind)) << why(report);
  EXPECT_FALSE(report.certificate);
}

TEST_P(CheckedBug, SchedulesShowTheFault) {
  const bool dependent = meta_of(GetParam()).value("input_dependent", false);
  const Case c(GetParam(), dependent ? "alt_in" : "in");
  expect_schedules_show(c.check_it(), c.module, c.call, c.call.cores, c.inputs);
}

INSTANTIATE_TEST_SUITE_P(Corpus, CheckedBug, testing::ValuesIn(names(false)),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gridless::emulate
