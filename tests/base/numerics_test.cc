// bf16, f16, fp8, fp4 and e8m0 against tables made elsewhere (tests/data/numfmt: bit-field
// formulas, checked there against ml_dtypes and torch) and against the definition of rounding, in
// double.
#include "gridless/base/numerics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gridless/base/float8.h"

namespace gridless {
namespace {

nlohmann::json table(const std::string& name) {
  std::ifstream in(std::string(GRIDLESS_TEST_DATA) + "/numfmt/" + name);
  return nlohmann::json::parse(in);
}

uint32_t hex(const nlohmann::json& j) {
  return static_cast<uint32_t>(std::stoul(j.get<std::string>(), nullptr, 16));
}

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
float from_bits(uint32_t u) { return std::bit_cast<float>(u); }

// splitmix64, for inputs that do not change from run to run.
uint64_t mix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

TEST(Bf16, RoundsAsTheTable) {
  const auto cases = table("bf16_round.json")["cases"];  // a loop over the temporary would dangle
  for (const auto& c : cases) {
    const bf16 got = to_bf16(from_bits(hex(c["f32_bits"])));
    if (c["bf16_bits"] == "nan") {
      EXPECT_TRUE(std::isnan(to_f32(got)) && (got.bits & 0x40)) << c;
    } else {
      EXPECT_EQ(got.bits, hex(c["bf16_bits"])) << c;
    }
  }
}

TEST(Bf16, AllPatternsSurviveWidening) {
  for (uint32_t p = 0; p < 65536; ++p) {
    const bf16 x{static_cast<uint16_t>(p)};
    if (std::isnan(to_f32(x))) {
      EXPECT_TRUE(std::isnan(to_f32(to_bf16(to_f32(x)))));
    } else {
      EXPECT_EQ(to_bf16(to_f32(x)), x);
    }
  }
}

// The value of a binary16 pattern from its definition.
double f16_value(uint32_t p) {
  const double sign = p & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(p >> 10 & 31);
  const double mantissa = p & 1023;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// Rounding by definition: to the multiple of the local spacing, in double, where nearbyint is
// exact.
double round_to_f16(double x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // |x| in [2^(e-1), 2^e)
  const double spacing = std::ldexp(1.0, std::max(exponent - 11, -24));
  const double r = std::nearbyint(x / spacing) * spacing;
  return std::fabs(r) >= 65536 ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
}

TEST(F16, AllPatternsDecodeByDefinitionAndSurvive) {
  for (uint32_t p = 0; p < 65536; ++p) {
    const f16 x{static_cast<uint16_t>(p)};
    const float f = to_f32(x);
    const double want = f16_value(p);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(f)) << p;
      EXPECT_TRUE(std::isnan(to_f32(to_f16(f)))) << p;
    } else {
      EXPECT_EQ(static_cast<double>(f), want) << p;
      EXPECT_EQ(std::signbit(f), (p & 0x8000) != 0) << p;
      EXPECT_EQ(to_f16(f), x) << p;
    }
  }
}

TEST(F16, RoundsToNearestEvenAroundEveryPattern) {
  const auto check = [](float x) {
    const double got = to_f32(to_f16(x));
    const double want = round_to_f16(x);
    EXPECT_EQ(got, want) << x;
    EXPECT_EQ(std::signbit(got), std::signbit(want)) << x;
  };
  for (uint32_t p = 0; p < 0x7bff; ++p) {
    // Each value, the midpoint to the next one and both float neighbours of the midpoint.
    const auto low = static_cast<float>(f16_value(p));
    const auto middle = static_cast<float>((f16_value(p) + f16_value(p + 1)) / 2);
    for (const float x :
         {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      check(x);
      check(-x);
    }
  }
  for (const float x :
       {65519.0f, 65519.996f, 65520.0f, 65535.0f, 65536.0f, 3e38f, INFINITY, 1e-45f})
    check(x), check(-x);
  uint64_t state = 1;
  for (int i = 0; i < 1000000; ++i) {
    const float x = from_bits(static_cast<uint32_t>(mix(state)));
    if (!std::isnan(x)) check(x);
  }
}

template <typename T>
void check_decode(const nlohmann::json& codes) {
  ASSERT_EQ(codes.size(), 256u);
  for (const auto& c : codes) {
    const float got = to_f32(T{c["code"].get<uint8_t>()});
    const float want = from_bits(hex(c["f32_bits"]));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << c;
    } else {
      EXPECT_EQ(bits(got), bits(want)) << c;
    }
  }
}

TEST(F8, E4m3DecodesAndEncodesAsTheTable) {
  const nlohmann::json t = table("e4m3fn.json");
  check_decode<f8e4m3>(t["decode"]);
  for (const auto& c : t["encode"]) {
    const float x = from_bits(hex(c["f32_bits"]));
    EXPECT_EQ(to_f8e4m3(x).bits, c["code_saturating"]) << c;
    EXPECT_EQ(to_f8e4m3(x, Overflow::kIeee).bits, c["code_nonsaturating_ml_dtypes"]) << c;
  }
  EXPECT_EQ(to_f8e4m3(NAN).bits, 0x7f);
  EXPECT_EQ(to_f8e4m3(-NAN).bits, 0xff);
}

TEST(F8, E5m2DecodesAndEncodesAsTheTable) {
  const nlohmann::json t = table("e5m2.json");
  check_decode<f8e5m2>(t["decode"]);
  for (const auto& c : t["encode"]) {
    const float x = from_bits(hex(c["f32_bits"]));
    EXPECT_EQ(to_f8e5m2(x).bits, c["code_saturating"]) << c;
    EXPECT_EQ(to_f8e5m2(x, Overflow::kIeee).bits, c["code_nonsaturating_ml_dtypes"]) << c;
  }
  EXPECT_EQ(to_f8e5m2(NAN).bits, 0x7e);
}

TEST(F8, E8m0DecodesAsTheTableAndEncodesTheNearestPower) {
  check_decode<f8e8m0>(table("e8m0.json"));
  for (int code = 0; code < 255; ++code) {
    const float x = to_f32(f8e8m0{static_cast<uint8_t>(code)});
    EXPECT_EQ(to_f8e8m0(x).bits, code);
    if (code > 0) {
      EXPECT_EQ(to_f8e8m0(std::nextafter(x * 0.75f, 0.0f)).bits, code - 1);
      EXPECT_EQ(to_f8e8m0(x * 0.75f).bits, code);
    }
  }
  for (const float x : {0.0f, -0.0f, -1.0f, NAN, -NAN, INFINITY, -INFINITY, 3e38f})
    EXPECT_EQ(to_f8e8m0(x).bits, 255) << x;
}

TEST(F4, E2m1DecodesAsTheTable) {
  for (const auto& c : table("e2m1.json")) {
    const float got = to_f32(f4e2m1{c["code"].get<uint8_t>()});
    EXPECT_EQ(bits(got), bits(c["value"].get<float>())) << c;
  }
}

TEST(F4, E2m1EncodesTheNearestTiesToEven) {
  // By search over all codes, in double: nearest, a tie to the even code.
  const auto nearest = [](double x) {
    uint8_t best = 0;
    for (uint8_t c = 1; c < 8; ++c) {
      const double d = std::fabs(to_f32(f4e2m1{c}) - x);
      const double old = std::fabs(to_f32(f4e2m1{best}) - x);
      if (d < old || (d == old && c % 2 == 0)) best = c;
    }
    return best;
  };
  for (int i = 0; i <= 1024; ++i) {
    const float x = static_cast<float>(i) / 128;
    EXPECT_EQ(to_f4e2m1(x).bits, nearest(x)) << x;
    EXPECT_EQ(to_f4e2m1(-x).bits, nearest(x) | 8) << x;
  }
  EXPECT_EQ(to_f4e2m1(INFINITY).bits, 7);
  EXPECT_EQ(to_f4e2m1(-1e30f).bits, 15);
  EXPECT_EQ(to_f4e2m1(1e-45f).bits, 0);
}

}  // namespace
}  // namespace gridless
