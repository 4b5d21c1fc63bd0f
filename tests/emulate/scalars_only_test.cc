// Runs without vector data: which scalars stay real, which are unknown, and that size costs
// nothing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "gridless/emulate/check/check.h"
#include "gridless/emulate/source_values.h"
#include "gridless/ir/text.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/lang/source.h"

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

// Whether the value matters needs a run with values: neither an error nor a proof.
TEST(ScalarsOnly, AVectorLoadBeyondARefIsAWarning) {
  const auto run = [](int32_t row) {
    Kernel k("beyond");
    const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
    const Ref y = k.output("y", Elem::kF32, {8, 128});
    k.scope([&] {
      const Ref a = k.vmem(Elem::kF32, {16, 128});
      a.store(zeros(k, Elem::kF32, {16, 128}));
      const Vec v = a.load({table.get({0}), 0}, {8, 128});
      a.store(v, {0, 0});
      k.copy(a.rows(0, 8), y, k.dma_sem()).wait();
    });
    return check(k, {row, 0, 0, 0});
  };
  EXPECT_TRUE(run(8).certificate);
  const CheckReport beyond = run(12);
  EXPECT_THAT(kinds(beyond), ElementsAre("out_of_bounds")) << to_string(beyond.diagnostics());
  EXPECT_TRUE(beyond.clean());
  EXPECT_FALSE(beyond.certificate);
}

// Two buffers change places in every round of a loop that carries their refs; an entry of the table
// that is in one of them chooses a tile.
TEST(ScalarsOnly, RefsThatALoopCarriesKeepTheirData) {
  const auto run = [](int32_t entry) {
    const std::string any = "memref<1x128xi32, #tpu.memory_space<any>>",
                      vmem = "memref<1x128xi32, #tpu.memory_space<vmem>>",
                      smem = "memref<1x128xi32, #tpu.memory_space<smem>>",
                      tiles = "memref<16x8x128xf32, #tpu.memory_space<any>>",
                      tile = "memref<1x8x128xf32, #tpu.memory_space<any>>",
                      local = "memref<1x8x128xf32, #tpu.memory_space<vmem>>",
                      sem = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>";
    const auto copy = [&](const char* from, const char* to, const std::string& from_type,
                          const std::string& to_type) {
      return fmt::format(
          R"("stable_mosaic.tpu.enqueue_dma"(%{0}, %{1}, %s) {{operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>, priority = 0 : i32, strict_ordering = false}} : ({2}, {3}, {4}) -> ()
             "stable_mosaic.tpu.wait_dma2"(%s, %{0}, %{1}) {{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}} : ({4}, {2}, {3}) -> ()
)",
          from, to, from_type, to_type, sem);
    };
    const std::string text =
        R"("builtin.module"() ({ "stable_mosaic.func.func"() ({ ^bb0(%table: )" + any +
        ", %x: " + tiles + ", %a: " + vmem + ", %b: " + vmem + ", %m: " + smem + ", %t: " + local +
        ", %s: " + sem + "):\n" + copy("table", "a", any, vmem) +
        R"(%c0 = "stable_mosaic.arith.constant"() {value = 0 : i32} : () -> i32
           %c1 = "stable_mosaic.arith.constant"() {value = 1 : i32} : () -> i32
           %c4 = "stable_mosaic.arith.constant"() {value = 4 : i32} : () -> i32
           %i0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
           %r:2 = "stable_mosaic.scf.for"(%c0, %c4, %c1, %a, %b) ({ ^bb0(%i: i32, %p: )" +
        vmem + ", %q: " + vmem + "):\n" + copy("p", "q", vmem, vmem) +
        R"("stable_mosaic.scf.yield"(%q, %p) : ()" + vmem + ", " + vmem +
        ") -> () }) : (i32, i32, i32, " + vmem + ", " + vmem + ") -> (" + vmem + ", " + vmem +
        ")\n" + copy("r#0", "m", vmem, smem) +
        R"(%n = "stable_mosaic.memref.load"(%m, %i0, %i0) : ()" + smem +
        R"(, index, index) -> i32
           %d = "stable_mosaic.tpu.memref_slice"(%x, %n, %c0, %c0) {operandSegmentSizes = array<i32: 1, 3, 0>} : ()" +
        tiles + ", i32, i32, i32) -> " + tile + "\n" + copy("d", "t", tile, local) +
        R"("stable_mosaic.func.return"() : () -> () }) {dimension_semantics = [], function_type = ()" +
        any + ", " + tiles + ", " + vmem + ", " + vmem + ", " + smem + ", " + local + ", " + sem +
        R"() -> (), scalar_prefetch = 0 : i64, scratch_operands = 5 : i64, sym_name = "main", tpu.core_type = #tpu.core_type<tc>} : () -> ()
        }) {stable_mosaic.version = 18 : i64} : () -> ())";
    const auto module = ir::parse(text);
    if (!module) {
      ADD_FAILURE() << to_string(module.error());
      return CheckReport();
    }
    ir::Call call{.name = "main"};
    call.operands = {{"table", ir::Type::memref({1, 128}, Elem::kI32, Space::kAny)},
                     {"x", ir::Type::memref({16, 8, 128}, Elem::kF32, Space::kAny)}};
    const std::vector<int32_t> table(128, entry);
    const std::vector<std::span<const std::byte>> inputs = {std::as_bytes(std::span(table)), {}};
    return emulate::check(*module, call, 1, inputs, {.scalars_only = true}).value();
  };
  const CheckReport good = run(15);
  EXPECT_TRUE(good.certificate) << to_string(good.diagnostics());
  EXPECT_THAT(kinds(run(16)), ElementsAre("out_of_bounds"));
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

// A router: tile 0 of `x` holds the numbers of the tiles to read, [row, choice].
void gather(Kernel& k, const Source& s) {
  const Ref x = k.input("x", Elem::kI32, {64, 8, 128});
  k.scope([&] {
    const Ref ids = k.vmem(Elem::kI32, {8, 128});
    k.copy(x.at(0), ids, k.dma_sem()).wait();
    const Vec v = ids.load();
    for (int64_t r = 0; r < s.extents[0]; ++r)
      for (int64_t j = 0; j < s.extents[1]; ++j) fetch(k, x, source(s, extract(v, {r, j}), {r, j}));
  });
}

TEST(NamedSources, DriveARunOfScalarsOnly) {
  const Source tiles{"tile", 0, 63, {4, 2}, true};
  Kernel k("driven", 2);
  gather(k, tiles);
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  EXPECT_THAT(ir::sources(program->module), ElementsAre(tiles));
  const auto again = ir::parse(ir::print(program->module));
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_THAT(ir::sources(*again), ElementsAre(tiles)) << "it survives printing";
  const std::vector<std::span<const std::byte>> none(1);
  const auto run = [&](const emulate::SourceValues* values) {
    return emulate::check(program->module, program->call, 2, none,
                          {.scalars_only = true, .sources = values})
        .value();
  };
  const CheckReport without = run(nullptr);
  EXPECT_FALSE(without.certificate);
  EXPECT_THAT(kinds(without), testing::Each("unknown_scalar"));
  EXPECT_THAT(without.notes, testing::Contains("source tile has no values"));
  for (int seed = 1; seed <= 9; ++seed) {
    const auto values = emulate::SourceValues::of_seed(seed);
    const CheckReport report = run(&values);
    EXPECT_TRUE(report.certificate) << seed << to_string(report.diagnostics());
  }
  const auto good =
      emulate::SourceValues::of_tensors({{"tile", {{4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}}}});
  EXPECT_TRUE(run(&good).certificate);
  const auto beyond =
      emulate::SourceValues::of_tensors({{"tile", {{4, 2}, {0, 1, 2, 3, 4, 5, 6, 64}}}});
  EXPECT_THAT(kinds(run(&beyond)), ElementsAre("assertion"));
}

// A run with values: core c has ids[c] in its vector, and reads them as values 0 and 1 of the
// source.
std::vector<std::string> with_values(const std::vector<std::array<int32_t, 2>>& ids,
                                     const Source& s) {
  const auto cores = static_cast<int>(ids.size());
  Kernel k("values", cores);
  const Ref x = k.input("x", Elem::kI32, {8, 128});
  const Ref y = k.input("y", Elem::kI32, {64, 8, 128});
  k.scope([&] {
    const Ref local = k.vmem(Elem::kI32, {8, 128});
    k.copy(x, local, k.dma_sem()).wait();
    for (int64_t j = 0; j < 2; ++j) fetch(k, y, source(s, extract(local.load(), {0, j}), {j}));
  });
  const auto program = k.finish();
  if (!program) return {to_string(program.error())};
  std::vector<int32_t> data(ids.size() * 8 * 128);
  for (size_t c = 0; c < ids.size(); ++c)
    std::ranges::copy(ids[c], data.begin() + static_cast<long>(c * 8 * 128));
  const std::vector<std::span<const std::byte>> spans = {std::as_bytes(std::span(data)), {}};
  const CheckReport report = emulate::check(program->module, program->call, cores, spans).value();
  if (report.certificate) return {"proved"};
  EXPECT_THAT(to_string(report.diagnostics()), HasSubstr("scalars_only_test.cc"));
  return kinds(report);
}

TEST(NamedSources, HoldARunWithValuesToTheirDeclaration) {
  const Source all{"tile", 0, 9, {2}, true};
  EXPECT_THAT(with_values({{3, 9}, {3, 9}}, all), ElementsAre("proved"));
  EXPECT_THAT(with_values({{3, 10}}, all), ElementsAre("assertion")) << "out of range";
  EXPECT_THAT(with_values({{3, 3}}, all), ElementsAre("assertion")) << "not distinct";
  EXPECT_THAT(with_values({{3, 9}, {3, 8}}, all), ElementsAre("assertion")) << "not alike";
  const Source own{"tile", 0, 9, {2}, true, 1};
  EXPECT_THAT(with_values({{3, 9}, {3, 8}}, own), ElementsAre("proved"));
}

TEST(NamedSources, WrongDeclarationsAreDiagnostics) {
  const auto build = [](const Source& s) {
    Kernel k("wrong");
    gather(k, s);
    const auto program = k.finish();
    return program ? "" : to_string(program.error());
  };
  EXPECT_EQ(build({"tile", 0, 63, {4, 2}}), "");
  EXPECT_THAT(build({"", 0, 63, {4, 2}}), HasSubstr("needs a name"));
  EXPECT_THAT(build({"tile", 5, 4, {4, 2}}), HasSubstr("no range"));
  EXPECT_THAT(build({"tile", 0, 0, {4, 2}, true}), HasSubstr("do not fit"));
  EXPECT_THAT(build({"tile", 0, 9, {4, 2, 1}}), HasSubstr("3 indices"));
}

TEST(ScalarsOnly, ALoopWithoutEndStopsAtTheLimit) {
  Kernel k("long");
  const Ref x = k.input("x", Elem::kF32, {16, 8, 128});
  k.loop(0, 1000000000, [&](Scalar i) { fetch(k, x, i % 16); });
  const CheckReport report = check(k, {}, 100000);
  EXPECT_THAT(kinds(report), testing::Contains("step_limit"));
  EXPECT_FALSE(report.certificate);
}

}  // namespace
}  // namespace gridless::lang
