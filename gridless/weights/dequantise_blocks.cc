#include "gridless/weights/dequantise_blocks.h"

#include <cstring>

#include "gridless/base/float8.h"
#include "gridless/base/numerics.h"

namespace gridless::weights {
namespace {

float load_f16(const uint8_t* p) {
  f16 x;
  std::memcpy(&x.bits, p, sizeof x.bits);
  return to_f32(x);
}

// Code i of 32 nibbles stored low halves first.
int nibble(const uint8_t* codes, int i) { return i < 16 ? codes[i] & 15 : codes[i - 16] >> 4; }

int fifth_bit(const uint8_t* bits, int i) { return bits[i / 8] >> (i % 8) & 1; }

struct ScaleMin {
  float scale;
  float minimum;
};

// Q4_K and Q5_K keep 8 scales and 8 minima of 6 bits in 12 bytes: groups 0..3 in the low six bits
// of bytes 0..3 (scales) and 4..7 (minima); groups 4..7 in the nibbles of bytes 8..11, their upper
// two bits in the spare upper bits of the first eight bytes.
ScaleMin group_scale(const uint8_t* block, int group) {
  const uint8_t* s = block + 4;
  int scale = 0;
  int minimum = 0;
  if (group < 4) {
    scale = s[group] & 63;
    minimum = s[group + 4] & 63;
  } else {
    scale = (s[group + 4] & 15) | (s[group - 4] >> 6 << 4);
    minimum = (s[group + 4] >> 4) | (s[group] >> 6 << 4);
  }
  return {load_f16(block) * static_cast<float>(scale),
          load_f16(block + 2) * static_cast<float>(minimum)};
}

}  // namespace

void block_q4_0(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 2, i) - 8);
}

void block_q4_1(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  const float m = load_f16(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 4, i)) + m;
}

void block_q5_0(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < 32; ++i) {
    const int code = nibble(block + 6, i) | fifth_bit(block + 2, i) << 4;
    out[i] = d * static_cast<float>(code - 16);
  }
}

void block_q5_1(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  const float m = load_f16(block + 2);
  for (int i = 0; i < 32; ++i) {
    const int code = nibble(block + 8, i) | fifth_bit(block + 4, i) << 4;
    out[i] = d * static_cast<float>(code) + m;
  }
}

void block_q8_0(const uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

void block_mxfp4(const uint8_t* block, float* out) {
  const float scale = to_f32(f8e8m0{block[0]});
  for (int i = 0; i < 32; ++i)
    out[i] = scale * to_f32(f4e2m1{static_cast<uint8_t>(nibble(block + 1, i))});
}

void block_q4_k(const uint8_t* block, float* out) {
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = group_scale(block, group);
    // Two groups share 32 bytes: the even one the low nibbles, the odd one the high nibbles.
    const uint8_t* codes = block + 16 + group / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int code = codes[i] >> (group % 2 * 4) & 15;
      out[32 * group + i] = scale * static_cast<float>(code) - minimum;
    }
  }
}

void block_q5_k(const uint8_t* block, float* out) {
  const uint8_t* fifth = block + 16;  // bit `group` of byte i belongs to element i of that group
  for (int group = 0; group < 8; ++group) {
    const auto [scale, minimum] = group_scale(block, group);
    const uint8_t* codes = block + 48 + group / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int code = (codes[i] >> (group % 2 * 4) & 15) | (fifth[i] >> group & 1) << 4;
      out[32 * group + i] = scale * static_cast<float>(code) - minimum;
    }
  }
}

void block_q6_k(const uint8_t* block, float* out) {
  const float d = load_f16(block + 208);
  for (int i = 0; i < 256; ++i) {
    // Halves of 128 elements; in each, four runs of 32: nibbles low, low, high, high of 64 bytes,
    // and the upper two bits of run k in bits 2k of 32 bytes.
    const int half = i / 128;
    const int run = i % 128 / 32;
    const int lane = i % 32;
    const int low = block[half * 64 + run % 2 * 32 + lane] >> (run / 2 * 4) & 15;
    const int high = block[128 + half * 32 + lane] >> (2 * run) & 3;
    const auto scale = static_cast<int8_t>(block[192 + i / 16]);
    out[i] = d * static_cast<float>(scale) * static_cast<float>((low | high << 4) - 32);
  }
}

}  // namespace gridless::weights
