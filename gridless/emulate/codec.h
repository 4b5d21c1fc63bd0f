// Element formats: bits as memory holds them <-> the canonical forms of value.h.
//
// Conversions to a float format round to nearest, ties to even, once. Beyond the largest value of
// an 8-bit float format they follow the format (e5m2: infinity, e4m3: NaN, as arith.truncf and
// ml_dtypes do); f4e2m1 has neither and saturates.
#pragma once

#include <cstdint>
#include <span>

#include "gridless/ir/type.h"

namespace gridless::emulate {

using ir::Elem;

// Bits that one element takes in a buffer: bit_width, except i1, which takes a byte.
int storage_bits(Elem e);
// Bytes of n elements, packed.
int64_t storage_bytes(Elem e, int64_t n);

int64_t wrap(Elem e, int64_t x);          // to the width of e, sign-extended; i1: 0 or 1
uint64_t as_unsigned(Elem e, int64_t x);  // the bits of a canonical x, zero-extended

float round_to(Elem e, float x);
void round_to(Elem e, std::span<float> x);

uint32_t float_bits(Elem e, float x);  // x rounded to e
float float_from_bits(Elem e, uint32_t bits);

// What uninitialised memory reads as. kPoison: a quiet NaN with a payload, or 0xdeadbeef cut to the
// width. The others are for the checker, which compares runs with different garbage: 7.5 or
// 0x2a2a2a2a; -1000 or 0xd5d5d5d5; zero.
enum class Fill : uint8_t { kPoison, kPositive, kNegative, kZero };
uint32_t fill_bits(Elem e, Fill fill);
inline uint32_t poison_bits(Elem e) { return fill_bits(e, Fill::kPoison); }

}  // namespace gridless::emulate
