#include "gridless/emulate/codec.h"

#include <bit>

#include "gridless/base/check.h"
#include "gridless/base/float8.h"
#include "gridless/base/numerics.h"

namespace gridless::emulate {

int storage_bits(Elem e) { return e == Elem::kI1 ? 8 : ir::bit_width(e); }

int64_t storage_bytes(Elem e, int64_t n) { return (n * storage_bits(e) + 7) / 8; }

int64_t wrap(Elem e, int64_t x) {
  if (e == Elem::kI1) return x & 1;
  const int bits = ir::bit_width(e);
  if (bits >= 64) return x;
  const int shift = 64 - bits;
  return static_cast<int64_t>(static_cast<uint64_t>(x) << shift) >> shift;
}

uint64_t as_unsigned(Elem e, int64_t x) {
  const int bits = ir::bit_width(e);
  const auto u = static_cast<uint64_t>(x);
  return bits >= 64 ? u : u & ((uint64_t{1} << bits) - 1);
}

uint32_t float_bits(Elem e, float x) {
  switch (e) {
    case Elem::kF32:
      return std::bit_cast<uint32_t>(x);
    case Elem::kBf16:
      return to_bf16(x).bits;
    case Elem::kF16:
      return to_f16(x).bits;
    case Elem::kF8E4M3FN:
      return to_f8e4m3(x, Overflow::kIeee).bits;
    case Elem::kF8E5M2:
      return to_f8e5m2(x, Overflow::kIeee).bits;
    case Elem::kF8E8M0FNU:
      return to_f8e8m0(x).bits;
    case Elem::kF4E2M1FN:
      return to_f4e2m1(x).bits;
    default:
      break;
  }
  GRIDLESS_CHECK(false, "{} is not a float format of the emulator", ir::spelling(e));
}

float float_from_bits(Elem e, uint32_t bits) {
  switch (e) {
    case Elem::kF32:
      return std::bit_cast<float>(bits);
    case Elem::kBf16:
      return to_f32(bf16{static_cast<uint16_t>(bits)});
    case Elem::kF16:
      return to_f32(f16{static_cast<uint16_t>(bits)});
    case Elem::kF8E4M3FN:
      return to_f32(f8e4m3{static_cast<uint8_t>(bits)});
    case Elem::kF8E5M2:
      return to_f32(f8e5m2{static_cast<uint8_t>(bits)});
    case Elem::kF8E8M0FNU:
      return to_f32(f8e8m0{static_cast<uint8_t>(bits)});
    case Elem::kF4E2M1FN:
      return to_f32(f4e2m1{static_cast<uint8_t>(bits & 0xf)});
    default:
      break;
  }
  GRIDLESS_CHECK(false, "{} is not a float format of the emulator", ir::spelling(e));
}

float round_to(Elem e, float x) {
  return e == Elem::kF32 ? x : float_from_bits(e, float_bits(e, x));
}

void round_to(Elem e, std::span<float> x) {
  if (e == Elem::kF32) return;
  if (e == Elem::kBf16) {  // by far the most frequent; the compiler makes this a vector loop
    for (float& v : x) v = round_bf16(v);
    return;
  }
  for (float& v : x) v = round_to(e, v);
}

namespace {
uint32_t cut(uint32_t pattern, int bits) {
  return bits >= 32 ? pattern : pattern & ((1u << bits) - 1u);
}
}  // namespace

uint32_t fill_bits(Elem e, Fill fill) {
  if (fill == Fill::kZero) return 0;
  if (fill != Fill::kPoison) {
    const bool positive = fill == Fill::kPositive;
    if (e == Elem::kI1) return positive ? 1 : 0;
    if (ir::is_float(e)) return float_bits(e, positive ? 7.5f : -1000.0f);
    return cut(positive ? 0x2a2a2a2au : 0xd5d5d5d5u, storage_bits(e));
  }
  switch (e) {
    case Elem::kF32:
      return 0x7fc0dead;
    case Elem::kBf16:
      return 0x7fde;
    case Elem::kF16:
      return 0x7ede;
    case Elem::kF8E4M3FN:
    case Elem::kF8E5M2:
      return 0x7f;
    case Elem::kF8E8M0FNU:
      return 0xff;
    case Elem::kI1:
      return 1;
    default:
      break;
  }
  return cut(0xdeadbeefu, storage_bits(e));
}

}  // namespace gridless::emulate
