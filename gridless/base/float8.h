// The 8- and 4-bit floating point formats of checkpoints and of the TPU, as bit patterns, beside
// bf16 and f16 of numerics.h. Formats and special values follow the OCP Microscaling (MX) 1.0 text:
//
//   f8e4m3  1-4-3 bias 7   largest 448, NaN 0x7f/0xff, no infinity ("e4m3fn")
//   f8e5m2  1-5-2 bias 15  largest 57344, infinity 0x7c, NaN above it
//   f4e2m1  1-2-1 bias 1   {0, .5, 1, 1.5, 2, 3, 4, 6}, no NaN, no infinity; in the low nibble
//   f8e8m0  a power of two, 2^(code - 127); 255 is NaN; no sign, no zero
//
// Encoding rounds to nearest, ties to the even code, exactly once. Overflow follows the caller's
// choice, because the world has two rules: kSaturate takes the largest finite value (also for
// infinity), kIeee takes what the format has: infinity, else NaN. NaN stays NaN with its sign.
#pragma once

#include <bit>
#include <cstdint>

namespace gridless {

struct f8e4m3 {
  uint8_t bits = 0;
  bool operator==(const f8e4m3&) const = default;
};
struct f8e5m2 {
  uint8_t bits = 0;
  bool operator==(const f8e5m2&) const = default;
};
struct f4e2m1 {
  uint8_t bits = 0;  // 0..15
  bool operator==(const f4e2m1&) const = default;
};
struct f8e8m0 {
  uint8_t bits = 0;
  bool operator==(const f8e8m0&) const = default;
};

enum class Overflow { kSaturate, kIeee };

namespace small_float {

// The magnitude of a finite float, given as its bits without sign, as a code of a format with M
// mantissa bits and bias B and no upper end: the caller compares the result with its largest code.
template <int M, int B>
constexpr uint32_t encode_magnitude(uint32_t a) {
  constexpr int kMinExponent = 1 - B;
  const int exponent = static_cast<int>(a >> 23) - 127;  // a float denormal is far below every grid
  const uint32_t mantissa = (a & 0x7fffffu) | 0x800000u;
  // Below the smallest normal value the grid no longer shrinks with the exponent.
  const int below = exponent < kMinExponent ? kMinExponent - exponent : 0;
  const int shift = 23 - M + below;
  if (shift > 24) return 0;  // less than half of the smallest denormal
  const uint32_t kept = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1u);
  const uint32_t half = 1u << (shift - 1);
  const uint32_t rounded = kept + (rest > half || (rest == half && (kept & 1u)) ? 1u : 0u);
  // `rounded` holds the implicit leading one, which counts as one step of the exponent field; a
  // carry out of the mantissa lands in the exponent by itself.
  const uint32_t steps = below ? 0u : static_cast<uint32_t>(exponent - kMinExponent);
  return (steps << M) + rounded;
}

// The magnitude that a finite code of such a format stands for.
template <int M, int B>
constexpr float decode_magnitude(uint32_t code) {
  const uint32_t exponent = code >> M;
  const uint32_t mantissa = code & ((1u << M) - 1u);
  constexpr float kUnit = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - B - M) << 23);
  if (exponent == 0)
    return static_cast<float>(mantissa) * kUnit;  // exact: few bits, a power of two
  return std::bit_cast<float>(((exponent + 127u - B) << 23) | (mantissa << (23 - M)));
}

constexpr float with_sign(float magnitude, bool negative) {
  return negative ? -magnitude : magnitude;
}

inline constexpr uint32_t kInfinity = 0x7f800000u;
inline constexpr uint32_t kQuietNan = 0x7fc00000u;

}  // namespace small_float

constexpr float to_f32(f8e4m3 x) {
  if ((x.bits & 0x7f) == 0x7f) return std::bit_cast<float>(small_float::kQuietNan);
  return small_float::with_sign(small_float::decode_magnitude<3, 7>(x.bits & 0x7f), x.bits & 0x80);
}

constexpr float to_f32(f8e5m2 x) {
  const uint32_t code = x.bits & 0x7f;
  if (code > 0x7c) return std::bit_cast<float>(small_float::kQuietNan);
  const float magnitude = code == 0x7c ? std::bit_cast<float>(small_float::kInfinity)
                                       : small_float::decode_magnitude<2, 15>(code);
  return small_float::with_sign(magnitude, x.bits & 0x80);
}

constexpr float to_f32(f4e2m1 x) {
  return small_float::with_sign(small_float::decode_magnitude<1, 1>(x.bits & 0x7), x.bits & 0x8);
}

constexpr float to_f32(f8e8m0 x) {
  if (x.bits == 255) return std::bit_cast<float>(small_float::kQuietNan);
  if (x.bits == 0) return std::bit_cast<float>(0x00400000u);  // 2^-127, a denormal
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 23);
}

constexpr f8e4m3 to_f8e4m3(float x, Overflow overflow = Overflow::kSaturate) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t a = u & 0x7fffffffu;
  const uint32_t beyond = overflow == Overflow::kSaturate ? 0x7eu : 0x7fu;
  uint32_t code = 0x7fu;
  if (a == small_float::kInfinity) {
    code = beyond;
  } else if (a < small_float::kInfinity) {
    code = small_float::encode_magnitude<3, 7>(a);
    if (code > 0x7eu) code = beyond;
  }
  return {static_cast<uint8_t>(code | (u >> 31 << 7))};
}

constexpr f8e5m2 to_f8e5m2(float x, Overflow overflow = Overflow::kSaturate) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t a = u & 0x7fffffffu;
  const uint32_t beyond = overflow == Overflow::kSaturate ? 0x7bu : 0x7cu;
  uint32_t code = 0x7eu;
  if (a == small_float::kInfinity) {
    code = beyond;
  } else if (a < small_float::kInfinity) {
    code = small_float::encode_magnitude<2, 15>(a);
    if (code > 0x7bu) code = beyond;
  }
  return {static_cast<uint8_t>(code | (u >> 31 << 7))};
}

// Saturates always (the format has nothing else); NaN becomes -0, as ml_dtypes has it.
constexpr f4e2m1 to_f4e2m1(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t a = u & 0x7fffffffu;
  if (a > small_float::kInfinity) return {0x8};
  uint32_t code = a == small_float::kInfinity ? 7u : small_float::encode_magnitude<1, 1>(a);
  if (code > 7u) code = 7u;
  return {static_cast<uint8_t>(code | (u >> 31 << 3))};
}

// The nearest power of two, a tie to the larger one. Zero, negative numbers, NaN and what rounds to
// 2^128 or more have no power of two: NaN.
constexpr f8e8m0 to_f8e8m0(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if (u == 0 || u >= small_float::kInfinity) return {255};  // the sign bit makes u large, too
  if (u < 0x00800000u) return {static_cast<uint8_t>(u >= 0x00600000u ? 1 : 0)};
  return {static_cast<uint8_t>((u + 0x00400000u) >> 23)};
}

}  // namespace gridless
