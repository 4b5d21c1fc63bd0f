// Float spellings: a table of what MLIR writes, and the conversions over whole formats.
#include "gridless/ir/float_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace gridless::ir {
namespace {

TEST(FloatText, SpellingsOfMlir) {
  const double inf = std::numeric_limits<double>::infinity();
  struct Row {
    double v;
    Elem e;
    const char* text;
  };
  const Row rows[] = {
      {0.0, Elem::kF32, "0.000000e+00"},
      {-0.0, Elem::kF32, "-0.000000e+00"},
      {1.0, Elem::kF32, "1.000000e+00"},
      {-1e30, Elem::kF32, "-1.000000e+30"},
      {256.0, Elem::kF32, "2.560000e+02"},
      {0.001, Elem::kF32, "1.000000e-03"},
      {1e-6F, Elem::kF32, "9.99999997E-7"},
      {0.0883883461F, Elem::kF32, "0.0883883461"},
      {1.0F / 3, Elem::kF32, "0.333333343"},
      {123.4567F, Elem::kF32, "123.456703"},
      {std::numeric_limits<float>::max(), Elem::kF32, "3.40282347E+38"},
      {std::numeric_limits<float>::min(), Elem::kF32, "1.17549435E-38"},
      {std::numeric_limits<float>::denorm_min(), Elem::kF32, "1.401300e-45"},
      // Eight digits and no point would read as an integer, so the bits are written.
      {16777216.0, Elem::kF32, "0x4B800000"},
      {33554434.0, Elem::kF64, "0x4180000010000000"},
      {inf, Elem::kF32, "0x7F800000"},
      {-inf, Elem::kF32, "0xFF800000"},
      {std::numeric_limits<double>::quiet_NaN(), Elem::kF32, "0x7FC00000"},
      {inf, Elem::kBf16, "0x7F80"},
      {-inf, Elem::kF16, "0xFC00"},
      {std::numeric_limits<double>::quiet_NaN(), Elem::kF8E4M3FN, "0x7F"},
      {0.1, Elem::kBf16, "1.000980e-01"},
      {0.1, Elem::kF64, "1.000000e-01"},
      {M_PI, Elem::kF64, "3.1415926535897931"},
      {448, Elem::kF8E4M3FN, "4.480000e+02"},
      {0.5, Elem::kF4E2M1FN, "5.000000e-01"},
  };
  for (const Row& r : rows) EXPECT_EQ(print_float(r.v, r.e), r.text);
}

TEST(FloatText, EveryCodeOfTheSmallFormatsComesBack) {
  for (const Elem e : {Elem::kF8E4M3FN, Elem::kF8E5M2, Elem::kF8E8M0FNU, Elem::kF4E2M1FN,
                       Elem::kF16, Elem::kBf16}) {
    const uint64_t codes = uint64_t{1} << bit_width(e);
    for (uint64_t bits = 0; bits < codes; ++bits) {
      const double v = float_from_bits(bits, e);
      ASSERT_EQ(float_bits(v, e), bits) << spelling(e) << " " << bits;
      const std::string text = print_float(v, e);
      if (text.starts_with("0x")) continue;
      ASSERT_EQ(float_bits(read_float(text, e), e), bits) << text;
    }
  }
}

TEST(FloatText, SignallingNansKeepTheirBits) {
  for (uint64_t bits : {0x7f800001U, 0xff812345U, 0x7fffffffU})
    EXPECT_EQ(float_bits(float_from_bits(bits, Elem::kF32), Elem::kF32), bits);
}

// 1 + 2^-8 + 2^-40 is above the tie between two bf16 numbers, but rounds to the tie in float32.
TEST(FloatText, RoundingHappensOnce) {
  const double above_tie = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(round_to(above_tie, Elem::kBf16), 1 + 0x1p-7);
  EXPECT_EQ(round_to(1 + 0x1p-8, Elem::kBf16), 1.0);
}

}  // namespace
}  // namespace gridless::ir
