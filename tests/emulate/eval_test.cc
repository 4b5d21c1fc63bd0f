// Values of the pure ops against numbers worked out by hand or by formulas written here.
#include "gridless/emulate/eval.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gridless/base/numerics.h"
#include "tests/emulate/eval_helper.h"

namespace gridless::emulate::testing {
namespace {

using ir::Attr;
using ir::OpCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax = std::numeric_limits<int32_t>::max();

Type vec(Shape s, Elem e) { return Type::vector(std::move(s), e); }

TEST(EvalFloat, Bf16IsComputedInF32AndRoundedOnce) {
  // 1 + 2^-8 lies half way between two bf16 numbers: to even, 1. And 1.0078125 + 2^-8 goes up.
  const auto sum = eval(OpCode::kArithAddf,
                        {floats({2}, {1.0f, 1.0078125f}, Elem::kBf16),
                         floats({2}, {0.00390625f, 0.00390625f}, Elem::kBf16)},
                        vec({2}, Elem::kBf16));
  EXPECT_THAT(as_floats(sum), ElementsAre(1.0f, 1.015625f));
}

TEST(EvalFloat, MaximumHandsNanOnAndOrdersZeros) {
  const auto a = floats({3}, {kNan, -0.0f, 2.0f}), b = floats({3}, {1.0f, 0.0f, 3.0f});
  const auto y = as_floats(eval(OpCode::kArithMaximumf, {a, b}, a.type()));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_FALSE(std::signbit(y[1]));
  EXPECT_EQ(y[2], 3.0f);
}

TEST(EvalFloat, ComparisonsTreatNanAsTheirPredicateSays) {
  const auto a = floats({3}, {1, kNan, 2}), b = floats({3}, {2, 1, 2});
  const auto run = [&](int64_t predicate) {
    return as_ints(eval(OpCode::kArithCmpf, {a, b}, vec({3}, Elem::kI1),
                        {{"predicate", Attr::i64(predicate)}}));
  };
  EXPECT_THAT(run(1), ElementsAre(0, 0, 1));   // oeq
  EXPECT_THAT(run(4), ElementsAre(1, 0, 0));   // olt
  EXPECT_THAT(run(8), ElementsAre(0, 1, 1));   // ueq
  EXPECT_THAT(run(13), ElementsAre(1, 1, 0));  // une
  EXPECT_THAT(run(14), ElementsAre(0, 1, 0));  // uno
}

TEST(EvalMath, TranscendentalsAreTheRoundedDoubleValue) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<float> x(1000);
  for (float& v : x) v = uniform(random);
  const auto check = [&](OpCode code, double (*f)(double)) {
    const auto y = as_floats(eval(code, {floats({1000}, x)}, vec({1000}, Elem::kF32)));
    for (size_t k = 0; k < x.size(); ++k) {
      const auto want = static_cast<float>(f(static_cast<double>(x[k])));
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(y[k]));
      } else {
        EXPECT_EQ(y[k], want) << x[k];
      }
    }
  };
  check(OpCode::kMathExp, [](double v) { return std::exp(v); });
  check(OpCode::kMathTanh, [](double v) { return std::tanh(v); });
  check(OpCode::kMathRsqrt, [](double v) { return 1 / std::sqrt(v); });
  check(OpCode::kTpuLogistic, [](double v) { return 1 / (1 + std::exp(-v)); });
  check(OpCode::kMathLog2, [](double v) { return std::log2(v); });
  check(OpCode::kMathLog1p, [](double v) { return std::log1p(v); });
}

TEST(EvalMath, RoundGoesAwayFromZeroAndRoundevenToEven) {
  const auto x = floats({6}, {0.5f, 1.5f, 2.5f, -0.5f, -2.5f, 8388609.0f});
  EXPECT_THAT(as_floats(eval(OpCode::kMathRound, {x}, x.type())),
              ElementsAre(1, 2, 3, -1, -3, 8388609));
  EXPECT_THAT(as_floats(eval(OpCode::kMathRoundeven, {x}, x.type())),
              ElementsAre(0, 2, 2, 0, -2, 8388609));
}

TEST(EvalInt, ArithmeticWrapsAtTheWidth) {
  const auto a = ints({2}, {kMax, kMin}), b = ints({2}, {1, -1});
  EXPECT_THAT(as_ints(eval(OpCode::kArithAddi, {a, b}, a.type())), ElementsAre(kMin, kMax));
  EXPECT_THAT(as_ints(eval(OpCode::kArithDivsi, {a, b}, a.type())), ElementsAre(kMax, kMin));
  const auto c = ints({2}, {100, -128}, Elem::kI8), d = ints({2}, {100, -1}, Elem::kI8);
  EXPECT_THAT(as_ints(eval(OpCode::kArithAddi, {c, d}, c.type())), ElementsAre(-56, 127));
  EXPECT_THAT(as_ints(eval(OpCode::kArithMuli, {c, d}, c.type())), ElementsAre(16, -128));
}

TEST(EvalInt, UnsignedOpsReadTheBitsOfTheWidth) {
  const auto a = ints({2}, {-2, 7}), b = ints({2}, {3, -1});
  EXPECT_THAT(as_ints(eval(OpCode::kArithDivui, {a, b}, a.type())), ElementsAre(1431655764, 0));
  EXPECT_THAT(as_ints(eval(OpCode::kArithMaxui, {a, b}, a.type())), ElementsAre(-2, -1));
  EXPECT_THAT(
      as_ints(eval(OpCode::kArithCmpi, {a, b}, vec({2}, Elem::kI1), {{"predicate", Attr::i64(6)}})),
      ElementsAre(0, 1));  // ult
}

TEST(EvalInt, ShiftsByTheWidthOrMoreShiftEverythingOut) {
  const auto a = ints({4}, {-8, -8, 1, kMin}), b = ints({4}, {1, 32, 31, -1});
  EXPECT_THAT(as_ints(eval(OpCode::kArithShli, {a, b}, a.type())), ElementsAre(-16, 0, kMin, 0));
  EXPECT_THAT(as_ints(eval(OpCode::kArithShrui, {a, b}, a.type())),
              ElementsAre(0x7ffffffc, 0, 0, 0));
  EXPECT_THAT(as_ints(eval(OpCode::kArithShrsi, {a, b}, a.type())), ElementsAre(-4, -1, 0, -1));
}

TEST(EvalInt, DivisionByZeroIsADiagnosticWithThePlaceOfTheOp) {
  const auto r = eval(OpCode::kArithDivsi, {ints({1}, {1}), ints({1}, {0})}, vec({1}, Elem::kI32));
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("division by zero"));
  EXPECT_EQ(r.error().where.str(), "kernel.cc:7");
}

TEST(EvalInt, CountsBits) {
  const auto a = ints({3}, {1, 0, -1});
  EXPECT_THAT(as_ints(eval(OpCode::kMathCtlz, {a}, a.type())), ElementsAre(31, 32, 0));
  EXPECT_THAT(as_ints(eval(OpCode::kMathCtpop, {a}, a.type())), ElementsAre(1, 0, 32));
}

TEST(EvalCast, FloatToIntSaturatesTowardZero) {
  const auto x = floats({6}, {2.9f, -2.9f, 3e9f, -kInf, kNan, 2147483520.0f});
  EXPECT_THAT(as_ints(eval(OpCode::kArithFptosi, {x}, vec({6}, Elem::kI32))),
              ElementsAre(2, -2, kMax, kMin, 0, 2147483520));
  EXPECT_THAT(as_ints(eval(OpCode::kArithFptosi, {x}, vec({6}, Elem::kI8))),
              ElementsAre(2, -2, 127, -128, 0, 127));
}

TEST(EvalCast, ExtensionsFollowTheSourceWidth) {
  const auto x = ints({2}, {-1, 5}, Elem::kI8), m = ints({2}, {1, 0}, Elem::kI1);
  EXPECT_THAT(as_ints(eval(OpCode::kArithExtui, {x}, vec({2}, Elem::kI32))), ElementsAre(255, 5));
  EXPECT_THAT(as_ints(eval(OpCode::kArithExtsi, {x}, vec({2}, Elem::kI32))), ElementsAre(-1, 5));
  EXPECT_THAT(as_ints(eval(OpCode::kArithExtui, {m}, vec({2}, Elem::kI32))), ElementsAre(1, 0));
  EXPECT_THAT(as_ints(eval(OpCode::kArithExtsi, {m}, vec({2}, Elem::kI32))), ElementsAre(-1, 0));
  const auto wide = ints({2}, {300, -129});
  EXPECT_THAT(as_ints(eval(OpCode::kArithTrunci, {wide}, vec({2}, Elem::kI8))),
              ElementsAre(44, 127));
  EXPECT_THAT(as_floats(eval(OpCode::kArithUitofp, {x}, vec({2}, Elem::kF32))),
              ElementsAre(255, 5));
}

TEST(EvalCast, BitcastBetweenWidthsPairsRows) {
  // 4x2 bf16 with bits 0x3f80 + row * 16 + column.
  std::vector<float> values;
  for (uint16_t r = 0; r < 4; ++r)
    for (uint16_t c = 0; c < 2; ++c)
      values.push_back(to_f32(bf16{static_cast<uint16_t>(0x3f80 + r * 16 + c)}));
  const auto x = floats({4, 2}, values, Elem::kBf16);
  const auto words = eval(OpCode::kTpuBitcast, {x}, vec({2, 2}, Elem::kI32));
  EXPECT_THAT(as_ints(words), ElementsAre(0x3f903f80, 0x3f913f81, 0x3fb03fa0, 0x3fb13fa1));
  EXPECT_EQ(as_floats(eval(OpCode::kTpuBitcast, {*words}, x.type())), values);
  const auto bytes =
      eval(OpCode::kTpuBitcast, {ints({1, 1}, {0x04030201})}, vec({4, 1}, Elem::kI8));
  EXPECT_THAT(as_ints(bytes), ElementsAre(1, 2, 3, 4));
}

TEST(EvalCast, PackPutsTheFirstOperandInTheLowHalf) {
  const auto x = floats({1}, {1.0f}), y = floats({1}, {-2.0f});
  const Attr bf16_type = Attr::type(Type::scalar(Elem::kBf16));
  const auto word =
      eval(OpCode::kTpuPackElementwise, {x, y}, vec({1}, Elem::kI32), {{"target_type", bf16_type}});
  EXPECT_THAT(as_ints(word), ElementsAre(std::bit_cast<int32_t>(0xc0003f80u)));
  EXPECT_THAT(as_floats(eval(OpCode::kTpuUnpackElementwise, {*word}, vec({1}, Elem::kF32),
                             {{"source_type", bf16_type}, {"index", Attr::i32(1)}})),
              ElementsAre(-2.0f));
}

}  // namespace
}  // namespace gridless::emulate::testing
