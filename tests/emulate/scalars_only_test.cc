// Runs without vector data: which scalars stay real, which are unknown, and that size costs
// nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gridless/emulate/check/check.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"

namespace gridless::lang {
namespace {

using emulate::CheckReport;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// `table` goes to the operand of that name, on every core.
CheckReport check(Kernel& k, const std::vector<int32_t>& table = {}, int64_t max_steps = 1000000) {
  const auto program = k.finish();
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return {};
  }
  const ir::Call& call = program->call;
  std::vector<std::vector<std::byte>> data(call.operands.size());
  for (size_t i = 0; i < data.size(); ++i) {
    if (call.operands[i].name != "table") continue;
    const auto bytes = std::as_bytes(std::span(table));
    for (int c = 0; c < call.cores; ++c) data[i].insert(data[i].end(), bytes.begin(), bytes.end());
  }
  const std::vector<std::span<const std::byte>> spans(data.begin(), data.end());
  auto report = emulate::check(program->module, call, call.cores, spans,
                               {.max_steps = max_steps, .scalars_only = true});
  if (!report) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return std::move(*report);
}

std::vector<std::string> kinds(const CheckReport& report) {
  std::vector<std::string> out;
  for (const Diagnostic& d : report.diagnostics()) out.push_back(d.kind);
  return out;
}

// Copies tile `i` of `from` to a buffer and waits.
void fetch(Kernel& k, Ref from, Scalar i) {
  k.scope([&] {
    const Ref tile = k.vmem(from.elem(), {8, 128});
    k.copy(from.at(i), tile, k.dma_sem()).wait();
  });
}

TEST(ScalarsOnly, ATableInSmemChoosesWhatIsRead) {
  Kernel k("table");
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {16, 8, 128});
  k.loop(0, 4, [&](Scalar i) { fetch(k, x, table.get({i})); });
  const CheckReport good = check(k, {3, 15, 0, 7});
  EXPECT_THAT(good.findings, IsEmpty()) << to_string(good.diagnostics());
  EXPECT_TRUE(good.certificate);
}

TEST(ScalarsOnly, ATableThatIsCopiedToSmemKeepsItsValues) {
  const auto run = [](int32_t last) {
    Kernel k("copied");
    const Ref table = k.input("table", Elem::kI32, {1, 128});
    const Ref x = k.input("x", Elem::kF32, {16, 8, 128});
    k.scope([&] {
      const Ref local = k.smem(Elem::kI32, {1, 128});
      k.copy(table, local, k.dma_sem()).wait();
      k.loop(0, 128, [&](Scalar i) { fetch(k, x, local.get({0, i})); });
    });
    std::vector<int32_t> values(128, 3);
    values[127] = last;
    return check(k, values);
  };
  EXPECT_TRUE(run(15).certificate);
  EXPECT_THAT(kinds(run(16)), ElementsAre("out_of_bounds"));
}

TEST(ScalarsOnly, AnOperandThatIsNotGivenIsUnknown) {
  Kernel k("missing");
  const Ref indices = k.input("indices", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {16, 8, 128});
  fetch(k, x, indices.get({0}));
  const CheckReport report = check(k);
  EXPECT_THAT(kinds(report), testing::Each("unknown_scalar"));
  EXPECT_FALSE(report.certificate);
  EXPECT_TRUE(report.clean());
}

TEST(ScalarsOnly, AScalarFromAVectorIsUnknownAndCountsAsZero) {
  Kernel k("vector");
  const Ref x = k.input("x", Elem::kI32, {16, 8, 128});
  k.scope([&] {
    const Ref tile = k.vmem(Elem::kI32, {8, 128});
    k.copy(x.at(0), tile, k.dma_sem()).wait();
    const Scalar n = extract(tile.load(), {0, 0});
    fetch(k, x, n);
    // A loop whose end nobody knows ends at once.
    k.while_(n, [&](Scalar i) { return i < 3; }, [&](Scalar i) { return i + 1; });
  });
  const CheckReport report = check(k);
  EXPECT_THAT(kinds(report), testing::Each("unknown_scalar")) << to_string(report.diagnostics());
  EXPECT_THAT(to_string(report.diagnostics()), HasSubstr("comes from vectors"));
  EXPECT_FALSE(report.certificate);
}

TEST(ScalarsOnly, WhatAKnownConditionDoesNotChooseMayBeUnknown) {
  Kernel k("select");
  const Ref x = k.input("x", Elem::kI32, {16, 8, 128});
  k.scope([&] {
    const Ref tile = k.vmem(Elem::kI32, {8, 128});
    k.copy(x.at(0), tile, k.dma_sem()).wait();
    const Scalar n = extract(tile.load(), {0, 0});
    fetch(k, x, where(k.core() == 0, Scalar(5), n));
  });
  EXPECT_TRUE(check(k).certificate);
}

TEST(ScalarsOnly, ScalarsStoredInSmemStayReal) {
  Kernel k("stored");
  const Ref x = k.input("x", Elem::kF32, {16, 8, 128});
  k.scope([&] {
    const Ref local = k.smem(Elem::kI32, {2});
    local.set({1}, k.core() + 17);
    fetch(k, x, local.get({1}));
  });
  EXPECT_THAT(kinds(check(k)), ElementsAre("out_of_bounds"));
}

TEST(ScalarsOnly, ATerabyteCostsNothing) {
  Kernel k("huge", 8);
  constexpr int64_t kTiles = int64_t{1} << 28;  // of 4 KiB: a terabyte per core
  const Ref x = k.input("x", Elem::kF32, {kTiles, 8, 128});
  const Ref y = k.output("y", Elem::kF32, {kTiles, 8, 128});
  k.scope([&] {
    const Ref tile = k.vmem(Elem::kF32, {8, 128});
    const Sem done = k.dma_sem();
    k.copy(x.at(kTiles - 1), tile, done).wait();
    tile.store(tile.load() + 1.0);
    k.copy(tile, y.at(kTiles - 1), done).wait();
  });
  EXPECT_TRUE(check(k).certificate);
}

TEST(ScalarsOnly, ABufferThatNothingWasWrittenToIsReported) {
  const auto run = [](bool fixed) {
    Kernel k("unwritten");
    const Ref y = k.output("y", Elem::kF32, {8, 128});
    k.scope([&] {
      const Ref sum = k.vmem(Elem::kF32, {8, 128});
      if (fixed) sum.store(zeros(k, Elem::kF32, {8, 128}));
      sum.store(sum.load() + 1.0);
      k.copy(sum, y, k.dma_sem()).wait();
    });
    return check(k);
  };
  const CheckReport report = run(false);
  EXPECT_THAT(kinds(report), ElementsAre("uninitialised_read"));
  EXPECT_TRUE(report.clean()) << "a warning: whether it matters needs values";
  EXPECT_THAT(run(true).findings, IsEmpty());
}

}  // namespace
}  // namespace gridless::lang
