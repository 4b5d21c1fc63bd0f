// The block formats of GGUF files, one function per format: one block of bytes to its floats.
// Layouts follow ggml's block structs (all little-endian, no padding); f16 = IEEE binary16.
#pragma once

#include <cstdint>

namespace gridless::weights {

// 32 elements. The low nibbles hold elements 0..15, the high nibbles 16..31.
void block_q4_0(const uint8_t* block, float* out);   // f16 d, 16 B: d * (code - 8)
void block_q4_1(const uint8_t* block, float* out);   // f16 d, f16 m, 16 B: d * code + m
void block_q5_0(const uint8_t* block, float* out);   // f16 d, 4 B fifth bits, 16 B: d * (code - 16)
void block_q5_1(const uint8_t* block, float* out);   // f16 d, f16 m, 4 B, 16 B: d * code + m
void block_q8_0(const uint8_t* block, float* out);   // f16 d, 32 B signed: d * code
void block_mxfp4(const uint8_t* block, float* out);  // e8m0 scale, 16 B e2m1: scale * value

// 256 elements in 8 groups of 32 (Q6_K: 16 of 16), each group with a 6- or 8-bit scale of its own.
void block_q4_k(const uint8_t* block, float* out);  // f16 d, f16 dmin, 12 B scales, 128 B codes
void block_q5_k(const uint8_t* block,
                float* out);  // the same with 32 B of fifth bits before the codes
void block_q6_k(const uint8_t* block, float* out);  // 128 B low, 64 B high, 16 B scales, f16 d

}  // namespace gridless::weights
