// The vocabulary of the vector kernels in AVX2: see simd_avx512.inl.

using F = __m256;
using I = __m256i;
inline constexpr int kWidth = 8;
inline constexpr int kBlockRows = 6, kBlockColumns = 2;
inline constexpr int fused_columns(int rows) {
  return rows == 1 ? 8 : rows == 2 ? 4 : rows <= 6 ? 2 : 1;
}

inline F zero() { return _mm256_setzero_ps(); }
inline F splat(float x) { return _mm256_set1_ps(x); }
inline F load(const float* p) { return _mm256_loadu_ps(p); }
inline I load_words(const void* p) { return _mm256_loadu_si256(static_cast<const I*>(p)); }
inline void store(float* p, F x) { _mm256_storeu_ps(p, x); }
inline F add(F a, F b) { return _mm256_add_ps(a, b); }
inline F sub(F a, F b) { return _mm256_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm256_mul_ps(a, b); }
inline F div(F a, F b) { return _mm256_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
inline F max(F a, F b) { return _mm256_max_ps(a, b); }
inline F min(F a, F b) { return _mm256_min_ps(a, b); }
inline float sum_lanes(F x) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
inline float max_lanes(F x) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
inline float min_lanes(F x) {
  __m128 s = _mm_min_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  s = _mm_min_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_min_ss(s, _mm_movehdup_ps(s)));
}
inline float first_lane(F x) { return _mm256_cvtss_f32(x); }
inline F sqrt(F x) { return _mm256_sqrt_ps(x); }
inline F round_to_integer(F x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// As two factors, because 2^n alone may overflow or be denormal where the product is neither.
inline F scale_by_power(F x, F n) {
  const I whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  const I bias = _mm256_set1_epi32(127);
  const I first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const I second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
  return mul(mul(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

using Mask = __m256;
inline Mask greater(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
inline Mask equal(F a, F b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
inline Mask both(Mask a, Mask b) { return _mm256_and_ps(a, b); }
inline Mask either(Mask a, Mask b) { return _mm256_or_ps(a, b); }
inline F select(Mask m, F yes, F no) { return _mm256_blendv_ps(no, yes, m); }
inline uint32_t bits(Mask m) { return static_cast<uint32_t>(_mm256_movemask_ps(m)); }

inline F bf16_low(I w) { return _mm256_castsi256_ps(_mm256_slli_epi32(w, 16)); }
inline F bf16_high(I w) {
  return _mm256_castsi256_ps(_mm256_and_si256(w, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}
// Codes become floats in place, as low bits of the mantissa of the power of two whose ulp their
// last bit then is: no shifts and no conversions, which have but two ports. A load two bytes further
// brings the upper half of a word down; it reads up to 2 bytes beyond the words: codes are followed
// by scales.
template <int kShift>
inline F in_place(I piece, float bias) {
  const I exponent = _mm256_set1_epi32((127 + 23 - kShift) << 23);
  const I number = _mm256_or_si256(piece, exponent);
  return sub(_mm256_castsi256_ps(number), splat(static_cast<float>(1 << (23 - kShift)) + bias));
}
template <int J>
inline F byte_code(const uint32_t* p) {
  constexpr int kShift = 8 * (J % 2);
  const I w = load_words(reinterpret_cast<const char*>(p) + J / 2 * 2);
  // With the sign inverted: code + 128.
  const I piece = _mm256_and_si256(_mm256_xor_si256(w, _mm256_set1_epi32(0x8080)),
                                   _mm256_set1_epi32(0xff << kShift));
  return in_place<kShift>(piece, 128);
}
template <int J>
inline F nibble_code(const uint32_t* p) {
  constexpr int kShift = 4 * (J % 4);
  const I w = load_words(reinterpret_cast<const char*>(p) + J / 4 * 2);
  return in_place<kShift>(_mm256_and_si256(w, _mm256_set1_epi32(0xf << kShift)), 8);
}
inline __m128i low_halves(I w) {
  const I packed = _mm256_packus_epi32(w, w);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}
inline F f16_low(I w) {
  return _mm256_cvtph_ps(low_halves(_mm256_and_si256(w, _mm256_set1_epi32(0xffff))));
}
inline F f16_high(I w) { return _mm256_cvtph_ps(low_halves(_mm256_srli_epi32(w, 16))); }

inline F load_bf16(const uint16_t* p) {
  const I wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline I bf16_words(F x) {
  const I u = _mm256_castps_si256(x);
  const I odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const I rounded = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd);
  const I quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const F nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  const F chosen = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan);
  return _mm256_srli_epi32(_mm256_castps_si256(chosen), 16);
}
inline void store_bf16(uint16_t* p, F x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), low_halves(bf16_words(x)));
}
inline F round_bf16(F x) { return _mm256_castsi256_ps(_mm256_slli_epi32(bf16_words(x), 16)); }
// AVX2 masks only whole words, so parts go through a buffer.
inline F load_bf16_part(const uint16_t* p, int n) {
  uint16_t buffer[kWidth] = {};
  for (int i = 0; i < n; ++i) buffer[i] = p[i];
  return load_bf16(buffer);
}
inline I part_mask(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline F load_part(const float* p, int n) { return _mm256_maskload_ps(p, part_mask(n)); }
inline void store_part(float* p, F x, int n) { _mm256_maskstore_ps(p, part_mask(n), x); }
inline void store_bf16_part(uint16_t* p, F x, int n) {
  uint16_t buffer[kWidth];
  store_bf16(buffer, x);
  for (int i = 0; i < n; ++i) p[i] = buffer[i];
}
inline F lane_numbers() { return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7); }

struct Pair {
  F even, odd;
};
inline Pair load_bf16_pair(const uint16_t* p) {
  const I w = load_words(p);
  return {bf16_low(w), bf16_high(w)};
}
inline void store_bf16_pair(uint16_t* p, Pair x) {
  const I words = _mm256_or_si256(bf16_words(x.even), _mm256_slli_epi32(bf16_words(x.odd), 16));
  _mm256_storeu_si256(reinterpret_cast<I*>(p), words);
}

inline F sums_of_vectors(const float* vectors) {
  F a[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = load(vectors + 8 * i);
  const F x0 = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
  const F x1 = _mm256_hadd_ps(_mm256_hadd_ps(a[4], a[5]), _mm256_hadd_ps(a[6], a[7]));
  return add(_mm256_permute2f128_ps(x0, x1, 0x20), _mm256_permute2f128_ps(x0, x1, 0x31));
}
