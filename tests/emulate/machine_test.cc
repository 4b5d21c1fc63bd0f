// Whole small kernels from text: memory, control flow, copies, grids, and what is reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "gridless/emulate/emulator.h"
#include "gridless/ir/text.h"

namespace gridless::emulate {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kF32x2x4 = "memref<2x4xf32, #tpu.memory_space<vmem>>";

ir::CallArg tensor(ir::Shape shape, ir::Elem e) {
  return {"t", ir::Type::memref(shape, e, ir::Space::kAny)};
}

std::string kernel(const std::string& arguments, const std::string& types, const std::string& body,
                   const std::string& attrs = "scratch_operands = 0 : i64") {
  return "\"builtin.module\"() ({\n\"stable_mosaic.func.func\"() ({\n^bb0(" + arguments + "):\n" +
         body +
         "\"stable_mosaic.func.return\"() : () -> ()\n}) {dimension_semantics = [], function_type "
         "= (" +
         types + ") -> (), scalar_prefetch = 0 : i64, " + attrs +
         ", sym_name = \"main\", tpu.core_type = #tpu.core_type<tc>} : () -> ()\n"
         "}) {stable_mosaic.version = 18 : i64} : () -> ()\n";
}

template <typename T>
struct Ran {
  Report report;
  std::vector<T> out;
};

template <typename T, typename In>
Ran<T> run(const std::string& text, const ir::Call& call, int cores, const std::vector<In>& in,
           const Options& options = {}) {
  auto module = ir::parse(text, "kernel.mlir");
  if (!module) {
    ADD_FAILURE() << to_string(module.error());
    return {};
  }
  const std::span<const std::byte> bytes = std::as_bytes(std::span(in));
  std::vector<std::span<const std::byte>> inputs;
  if (!call.operands.empty()) inputs.push_back(bytes);
  auto result = run_call(*module, call, cores, inputs, options);
  if (!result) {
    ADD_FAILURE() << result.error().message;
    return {};
  }
  Ran<T> ran{std::move(result->report), {}};
  ran.out.resize(result->outputs[0].size() / sizeof(T));
  std::memcpy(ran.out.data(), result->outputs[0].data(), result->outputs[0].size());
  return ran;
}

std::vector<float> counting(size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.0f);
  return v;
}

TEST(Machine, RefBitcastPairsRowsAsTheVectorBitcastDoes) {
  // bf16[4,4] in; its i32[2,4] view, sliced at row 1, stored out: rows 2 and 3 of the input.
  const std::string in = "memref<4x4xbf16, #tpu.memory_space<vmem>>",
                    out = "memref<1x4xi32, #tpu.memory_space<vmem>>";
  const std::string wide = "memref<2x4xi32, #tpu.memory_space<vmem>>";
  const std::string text = kernel("%a: " + in + ", %o: " + out, in + ", " + out,
                                  R"(
%c0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
%i0 = "stable_mosaic.arith.constant"() {value = 0 : i32} : () -> i32
%i1 = "stable_mosaic.arith.constant"() {value = 1 : i32} : () -> i32
%w = "stable_mosaic.tpu.memref_bitcast"(%a) : ()" +
                                      in + ") -> " + wide + R"(
%s = "stable_mosaic.tpu.memref_slice"(%w, %i1, %i0) {operandSegmentSizes = array<i32: 1, 2, 0>} : ()" +
                                      wide + ", i32, i32) -> " + out + R"(
%v = "stable_mosaic.vector.load"(%s, %c0, %c0) : ()" +
                                      out + R"(, index, index) -> vector<1x4xi32>
"stable_mosaic.tpu.vector_store"(%v, %o, %c0, %c0) {add = false, operandSegmentSizes = array<i32: 1, 1, 2, 0>, strides = array<i32>} : (vector<1x4xi32>, )" +
                                      out + ", index, index) -> ()\n");
  ir::Call call{.operands = {tensor({4, 4}, ir::Elem::kBf16)},
                .results = {tensor({1, 4}, ir::Elem::kI32)}};
  std::vector<uint16_t> x(16);
  std::iota(x.begin(), x.end(), uint16_t{0x100});
  const auto ran = run<uint32_t>(text, call, 1, x);
  EXPECT_THAT(ran.report.diagnostics, SizeIs(0)) << to_string(ran.report.diagnostics);
  EXPECT_THAT(ran.out, ElementsAre(0x010c0108u, 0x010d0109u, 0x010e010au, 0x010f010bu));
}

std::string loop_kernel(const std::string& step) {
  // sum of i for i in [2, 7) by step, through a carried scalar, stored at [0].
  const std::string out = "memref<1xi32, #tpu.memory_space<smem>>";
  return kernel("%o: " + out, out,
                R"(
%c0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
%lo = "stable_mosaic.arith.constant"() {value = 2 : i32} : () -> i32
%hi = "stable_mosaic.arith.constant"() {value = 7 : i32} : () -> i32
%st = "stable_mosaic.arith.constant"() {value = )" +
                    step + R"( : i32} : () -> i32
%z = "stable_mosaic.arith.constant"() {value = 0 : i32} : () -> i32
%r = "stable_mosaic.scf.for"(%lo, %hi, %st, %z) ({
^bb0(%i: i32, %acc: i32):
  %n = "stable_mosaic.arith.addi"(%acc, %i) : (i32, i32) -> i32
  "stable_mosaic.scf.yield"(%n) : (i32) -> ()
}) : (i32, i32, i32, i32) -> i32
"stable_mosaic.memref.store"(%r, %o, %c0) : (i32, )" +
                    out + ", index) -> ()\n");
}

TEST(Machine, LoopsCarryValuesAndRefuseAStepThatIsNotPositive) {
  const ir::Call call{.results = {tensor({1}, ir::Elem::kI32)}};
  EXPECT_THAT(run<int32_t>(loop_kernel("2"), call, 1, std::vector<int>{}).out,
              ElementsAre(2 + 4 + 6));
  const auto bad = run<int32_t>(loop_kernel("0"), call, 1, std::vector<int>{});
  ASSERT_THAT(bad.report.diagnostics, SizeIs(1));
  EXPECT_THAT(bad.report.diagnostics[0].message, HasSubstr("step 0"));
  EXPECT_EQ(bad.report.diagnostics[0].where.file, "kernel.mlir");
}

TEST(Machine, TheStepLimitStopsALongLoop) {
  const ir::Call call{.results = {tensor({1}, ir::Elem::kI32)}};
  const auto ran = run<int32_t>(loop_kernel("1"), call, 1, std::vector<int>{}, {.max_steps = 10});
  ASSERT_THAT(ran.report.diagnostics, SizeIs(1));
  EXPECT_EQ(ran.report.diagnostics[0].kind, "step_limit");
  EXPECT_FALSE(ran.report.finished);
}

TEST(Machine, ScratchIsPoisonUntilWritten) {
  const std::string m = kF32x2x4;
  const std::string text = kernel("%o: " + m + ", %s: " + m, m + ", " + m,
                                  R"(
%c0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
%v = "stable_mosaic.vector.load"(%s, %c0, %c0) : ()" +
                                      m + R"(, index, index) -> vector<2x4xf32>
"stable_mosaic.vector.store"(%v, %o, %c0, %c0) : (vector<2x4xf32>, )" +
                                      m + ", index, index) -> ()\n",
                                  "scratch_operands = 1 : i64");
  const auto ran =
      run<float>(text, {.results = {tensor({2, 4}, ir::Elem::kF32)}}, 1, std::vector<int>{});
  EXPECT_TRUE(ran.report.finished);
  for (float v : ran.out) EXPECT_TRUE(std::isnan(v));
}

TEST(Machine, StoresBeyondARefAreReportedWithIndexAndShape) {
  const std::string m = kF32x2x4;
  const std::string text = kernel("%a: " + m + ", %o: " + m, m + ", " + m,
                                  R"(
%c0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
%d = "stable_mosaic.tpu.device_id"() : () -> i32
%c1 = "stable_mosaic.arith.index_cast"(%d) : (i32) -> index
%v = "stable_mosaic.vector.load"(%a, %c0, %c0) : ()" +
                                      m + R"(, index, index) -> vector<2x4xf32>
"stable_mosaic.vector.store"(%v, %o, %c1, %c0) : (vector<2x4xf32>, )" +
                                      m + ", index, index) -> ()\n");
  const ir::Call call{.operands = {tensor({2, 4}, ir::Elem::kF32)},
                      .results = {tensor({2, 4}, ir::Elem::kF32)}};
  EXPECT_EQ(run<float>(text, call, 1, counting(8)).out, counting(8));
  const auto bad = run<float>(text, call, 2, counting(16));
  ASSERT_THAT(bad.report.diagnostics, SizeIs(1));
  EXPECT_EQ(bad.report.diagnostics[0].kind, "out_of_bounds");
  EXPECT_THAT(bad.report.diagnostics[0].message,
              HasSubstr("on core 1: indices 1 to 2 of dimension 0, which has 2"));
}

// Blocks of 2x4 of a 3x4 tensor: the second is cut at the tensor's end, both ways.
TEST(Grid, APartialBlockIsClippedAndTheRestIsPoison) {
  const std::string m = kF32x2x4;
  std::string text =
      kernel("%g: i32, %a: " + m + ", %o: " + m, "i32, " + m + ", " + m,
             R"(
%c0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
%v = "stable_mosaic.vector.load"(%a, %c0, %c0) : ()" +
                 m + R"(, index, index) -> vector<2x4xf32>
%w = "stable_mosaic.arith.addf"(%v, %v) : (vector<2x4xf32>, vector<2x4xf32>) -> vector<2x4xf32>
"stable_mosaic.vector.store"(%w, %o, %c0, %c0) : (vector<2x4xf32>, )" +
                 m + ", index, index) -> ()\n",
             "scratch_operands = 0 : i64, iteration_bounds = array<i64: 2>, window_params = ["
             "{transform_indices = @t, window_bounds = array<i64: 2, 4>}, "
             "{transform_indices = @t, window_bounds = array<i64: 2, 4>}]");
  const std::string transform = R"("stable_mosaic.func.func"() ({
^bb0(%i: i32):
  %z = "stable_mosaic.arith.constant"() {value = 0 : i32} : () -> i32
  "stable_mosaic.func.return"(%i, %z) : (i32, i32) -> ()
}) {function_type = (i32) -> (i32, i32), sym_name = "t"} : () -> ()
}) {stable_mosaic.version)";
  text.replace(text.find("}) {stable_mosaic.version"), 25, transform);
  const ir::Call call{.operands = {tensor({3, 4}, ir::Elem::kF32)},
                      .results = {tensor({3, 4}, ir::Elem::kF32)}};
  const auto ran = run<float>(text, call, 1, counting(12));
  EXPECT_THAT(ran.report.diagnostics, SizeIs(0)) << to_string(ran.report.diagnostics);
  std::vector<float> want = counting(12);
  for (float& v : want) v *= 2;
  EXPECT_EQ(ran.out, want);
}

// Adds 1 to a number in memory at each point of a grid of a dynamic and a static size.
std::string grid_kernel() {
  const std::string out = "memref<1xi32, #tpu.memory_space<smem>>";
  return kernel(
      "%i: i32, %j: i32, %o: " + out, "i32, i32, " + out,
      R"(
%c0 = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
%one = "stable_mosaic.arith.constant"() {value = 1 : i32} : () -> i32
%point = "stable_mosaic.arith.addi"(%i, %j) : (i32, i32) -> i32
%zero = "stable_mosaic.arith.constant"() {value = 0 : i32} : () -> i32
%first = "stable_mosaic.arith.cmpi"(%point, %zero) {predicate = 0 : i64} : (i32, i32) -> i1
%old = "stable_mosaic.memref.load"(%o, %c0) : ()" +
          out + R"(, index) -> i32
%from = "stable_mosaic.arith.select"(%first, %zero, %old) : (i1, i32, i32) -> i32
%new = "stable_mosaic.arith.addi"(%from, %one) : (i32, i32) -> i32
"stable_mosaic.memref.store"(%new, %o, %c0) : (i32, )" +
          out + ", index) -> ()\n",
      "iteration_bounds = array<i64: -9223372036854775808, 2>, scratch_operands = 0 : i64");
}

TEST(Machine, DynamicGridsRunAsOftenAsTheirOperandSays) {
  const ir::Call call{.operands = {tensor({}, ir::Elem::kI32)},
                      .results = {tensor({1}, ir::Elem::kI32)}};
  const auto ran = run<int32_t>(grid_kernel(), call, 1, std::vector<int32_t>{3});
  EXPECT_THAT(ran.report.diagnostics, SizeIs(0)) << to_string(ran.report.diagnostics);
  EXPECT_THAT(ran.out, ElementsAre(6));
}

TEST(Machine, AGridWithoutPointsRunsNothing) {
  const ir::Call call{.operands = {tensor({}, ir::Elem::kI32)},
                      .results = {tensor({1}, ir::Elem::kI32)}};
  const auto ran = run<int32_t>(grid_kernel(), call, 1, std::vector<int32_t>{0});
  EXPECT_THAT(ran.report.diagnostics, SizeIs(0)) << to_string(ran.report.diagnostics);
  EXPECT_TRUE(ran.report.finished);
}

}  // namespace
}  // namespace gridless::emulate
