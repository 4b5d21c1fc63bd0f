// Ops that move, reduce or multiply, against loops written here.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <random>

#include "gridless/base/numerics.h"
#include "tests/emulate/eval_helper.h"

namespace gridless::emulate::testing {
namespace {

using ir::Attr;
using ir::OpCode;
using ::testing::ElementsAre;

Type vec(Shape s, Elem e = Elem::kF32) { return Type::vector(std::move(s), e); }

// 0, 1, 2, ...
Vector counting(Shape shape) {
  Vector v(vec(std::move(shape)));
  for (size_t k = 0; k < static_cast<size_t>(v.size()); ++k)
    v.mutable_f()[k] = static_cast<float>(k);
  return v;
}

TEST(EvalShape, BroadcastRepeatsAlongOnesAndNewLeadingDimensions) {
  const auto column = floats({2, 1}, {1, 2});
  EXPECT_THAT(as_floats(eval(OpCode::kVectorBroadcast, {column}, vec({2, 3}))),
              ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(as_floats(eval(OpCode::kVectorBroadcast, {floats({2}, {1, 2})}, vec({2, 2}))),
              ElementsAre(1, 2, 1, 2));
  EXPECT_THAT(
      as_floats(eval(OpCode::kVectorBroadcast, {Scalar{.elem = Elem::kF32, .f = 7}}, vec({2}))),
      ElementsAre(7, 7));
}

TEST(EvalShape, RotateRollsAsNumpyDoesWithAGrowingShift) {
  const auto x = counting({2, 4});
  const RtValue shift = Scalar{.elem = Elem::kI32, .i = 1};
  EXPECT_THAT(as_floats(eval(OpCode::kTpuDynamicRotate, {x, shift}, x.type(),
                             {{"dimension", Attr::i32(1)}})),
              ElementsAre(3, 0, 1, 2, 7, 4, 5, 6));
  EXPECT_THAT(as_floats(eval(OpCode::kTpuDynamicRotate, {x, shift}, x.type(),
                             {{"dimension", Attr::i32(1)},
                              {"stride", Attr::i32(2)},
                              {"stride_dimension", Attr::i32(0)}})),
              ElementsAre(3, 0, 1, 2, 5, 6, 7, 4));
}

TEST(EvalShape, TransposeConcatenateSliceExtractIota) {
  const auto x = counting({2, 3});
  EXPECT_THAT(as_floats(eval(OpCode::kTpuTranspose, {x}, vec({3, 2}),
                             {{"permutation", Attr::dense_array(Elem::kI64, {1, 0})}})),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(as_floats(eval(OpCode::kTpuConcatenate, {x, floats({2, 1}, {8, 9})}, vec({2, 4}),
                             {{"dimension", Attr::i32(1)}})),
              ElementsAre(0, 1, 2, 8, 3, 4, 5, 9));
  const auto list = [](std::vector<int64_t> v) {
    std::vector<Attr> out;
    for (int64_t e : v) out.push_back(Attr::i64(e));
    return Attr::array(out);
  };
  EXPECT_THAT(as_floats(eval(
                  OpCode::kVectorExtractStridedSlice, {x}, vec({2, 2}),
                  {{"offsets", list({0, 1})}, {"sizes", list({2, 2})}, {"strides", list({1, 1})}})),
              ElementsAre(1, 2, 4, 5));
  const auto one = eval(OpCode::kVectorExtract, {x}, Type::scalar(Elem::kF32),
                        {{"static_position", Attr::dense_array(Elem::kI64, {1, 2})}});
  EXPECT_EQ(std::get<Scalar>(*one).f, 5);
  EXPECT_THAT(as_ints(eval(OpCode::kTpuIota, {}, vec({2, 3}, Elem::kI32),
                           {{"dimensions", Attr::dense_array(Elem::kI32, {1})}})),
              ElementsAre(0, 1, 2, 0, 1, 2));
}

TEST(EvalShape, GatherTakesAlongItsDimension) {
  const auto x = counting({2, 3});
  EXPECT_THAT(as_floats(eval(OpCode::kTpuDynamicGather, {x, ints({2, 3}, {2, 2, 0, 1, 0, 2})},
                             x.type(), {{"dimensions", Attr::dense_array(Elem::kI32, {1})}})),
              ElementsAre(2, 2, 0, 4, 3, 5));
  EXPECT_THAT(as_floats(eval(OpCode::kTpuDynamicGather, {x, ints({2, 3}, {1, 0, 1, 0, 0, 1})},
                             x.type(), {{"dimensions", Attr::dense_array(Elem::kI32, {0})}})),
              ElementsAre(3, 1, 5, 0, 1, 5));
}

TEST(EvalReduce, AddsInOrderStartingFromTheAccumulator) {
  // 2^24 + 1 + 1 stays 2^24 in f32 when added one by one; 1 + 1 first would give 2^24 + 2.
  const auto x = floats({1, 2}, {1, 1});
  const auto sum = eval(OpCode::kVectorMultiReduction, {x, floats({1}, {16777216.0f})}, vec({1}),
                        {{"kind", Attr::opaque("#vector.kind<add>")},
                         {"reduction_dims", Attr::dense_array(Elem::kI64, {1})}});
  EXPECT_THAT(as_floats(sum), ElementsAre(16777216.0f));
}

TEST(EvalReduce, AnyDimensionsAndKinds) {
  const auto x = counting({2, 3, 2});
  const auto reduce = [&](const char* kind, std::vector<int64_t> dims, Vector acc) {
    const Type type = acc.type();
    return as_floats(eval(OpCode::kVectorMultiReduction, {x, std::move(acc)}, type,
                          {{"kind", Attr::opaque(kind)},
                           {"reduction_dims", Attr::dense_array(Elem::kI64, std::move(dims))}}));
  };
  EXPECT_THAT(reduce("#vector.kind<add>", {0, 2}, floats({3}, {0, 0, 0})), ElementsAre(14, 22, 30));
  EXPECT_THAT(reduce("#vector.kind<maximumf>", {1}, floats({2, 2}, {9, 9, 9, 9})),
              ElementsAre(9, 9, 10, 11));
  EXPECT_THAT(reduce("#vector.kind<minimumf>", {0}, floats({3, 2}, {9, 9, 9, 9, 9, 4})),
              ElementsAre(0, 1, 2, 3, 4, 4));
}

TEST(EvalReduce, ArgMaxTakesTheFirstOfEquals) {
  const auto x = floats({2, 4}, {1, 5, 5, 2, -1, -3, -3, -1});
  EXPECT_THAT(as_ints(eval(OpCode::kTpuReduceIndex, {x}, vec({2}, Elem::kI32),
                           {{"axis", Attr::i32(1)},
                            {"kind", Attr::opaque("#tpu.reduction_kind<arg_max>")}})),
              ElementsAre(1, 0));
  EXPECT_THAT(as_ints(eval(OpCode::kTpuReduceIndex, {x}, vec({4}, Elem::kI32),
                           {{"axis", Attr::i32(0)},
                            {"kind", Attr::opaque("#tpu.reduction_kind<arg_min>")}})),
              ElementsAre(1, 1, 1, 1));
}

struct Matmul : ::testing::Test {
  std::mt19937 random{5};
  Vector make(Shape shape, Elem e) {
    std::normal_distribution<float> normal;
    Vector v(vec(std::move(shape), e));
    for (float& x : v.mutable_f())
      x = e == Elem::kBf16 ? round_bf16(normal(random)) : normal(random);
    return v;
  }
  static RtValue run(const Vector& x, const Vector& w, const Vector& acc, const char* dims,
                     const char* precision = nullptr) {
    std::vector<ir::NamedAttr> attrs = {{"dimension_numbers", Attr::opaque(dims)},
                                        {"transpose_lhs", Attr::boolean(false)},
                                        {"transpose_rhs", Attr::boolean(false)}};
    if (precision) attrs.emplace_back("precision", Attr::opaque(precision));
    return *eval(OpCode::kTpuMatmul, {x, w, acc}, acc.type(), attrs);
  }
};

// The contract that hand kernels reproduce: fma, k ascending from the accumulator.
TEST_F(Matmul, IsASequentialFmaChainToTheBit) {
  const Vector x = make({3, 50}, Elem::kF32), w = make({50, 20}, Elem::kF32),
               acc = make({3, 20}, Elem::kF32);
  for (const bool keep : {false, true}) {
    const RtValue y =
        run(x, w, acc, "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>",
            keep ? "#tpu.contract_precision<fp32>" : nullptr);
    const auto operand = [&](float v) { return keep ? v : round_bf16(v); };
    for (size_t m = 0; m < 3; ++m)
      for (size_t n = 0; n < 20; ++n) {
        float sum = acc.f()[m * 20 + n];
        for (size_t k = 0; k < 50; ++k)
          sum = std::fma(operand(x.f()[m * 50 + k]), operand(w.f()[k * 20 + n]), sum);
        EXPECT_EQ(std::get<Vector>(y).f()[m * 20 + n], sum);
      }
  }
}

TEST_F(Matmul, EveryLayoutGivesTheSameBits) {
  const Vector x = make({4, 32}, Elem::kBf16), w = make({32, 8}, Elem::kBf16),
               acc = make({4, 8}, Elem::kF32);
  const auto flip = [](const Vector& v) {
    const Shape s = {v.shape()[1], v.shape()[0]};
    return std::get<Vector>(*eval(OpCode::kTpuTranspose, {v}, vec(s, v.elem()),
                                  {{"permutation", Attr::dense_array(Elem::kI64, {1, 0})}}));
  };
  const auto want = as_floats(
      run(x, w, acc, "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"));
  EXPECT_EQ(as_floats(run(x, flip(w), acc,
                          "#tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>")),
            want);
  EXPECT_EQ(as_floats(run(flip(x), w, acc,
                          "#tpu.dot_dimension_numbers<[0], [0], [1], [1], [0, 1, 1, 1], [], []>")),
            want);
  // The result transposed.
  EXPECT_EQ(as_floats(RtValue(flip(std::get<Vector>(
                run(x, w, flip(acc),
                    "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [1, 1, 0, 0], [], []>"))))),
            want);
}

TEST_F(Matmul, BatchesAreIndependent) {
  const Vector x = make({2, 3, 16}, Elem::kBf16), w = make({2, 5, 16}, Elem::kBf16);
  const Vector acc = floats({2, 3, 5}, std::vector<float>(30, 0));
  const RtValue y = run(
      x, w, acc, "#tpu.dot_dimension_numbers<[2], [2], [1], [1], [0, 0, 0, 1, 1, 1], [0], [0]>");
  for (size_t b = 0; b < 2; ++b)
    for (size_t m = 0; m < 3; ++m)
      for (size_t n = 0; n < 5; ++n) {
        float sum = 0;
        for (size_t k = 0; k < 16; ++k)
          sum = std::fma(x.f()[(b * 3 + m) * 16 + k], w.f()[(b * 5 + n) * 16 + k], sum);
        EXPECT_EQ(std::get<Vector>(y).f()[(b * 3 + m) * 5 + n], sum);
      }
}

TEST_F(Matmul, IntegersAreExact) {
  const auto x = ints({1, 2}, {-128, 127}, Elem::kI8), w = ints({2, 1}, {127, -128}, Elem::kI8);
  const RtValue y = run(x, w, ints({1, 1}, {5}),
                        "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>");
  EXPECT_EQ(std::get<Vector>(y).i()[0], -2 * 128 * 127 + 5);
}

}  // namespace
}  // namespace gridless::emulate::testing
