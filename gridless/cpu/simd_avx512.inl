// The vocabulary of the vector kernels in AVX-512: F is a vector of floats, I one of 32-bit words.
// Included once by kernels_avx512.cc, inside its anonymous namespace.

using F = __m512;
using I = __m512i;
inline constexpr int kWidth = 16;
// The block of dot_many: rows x columns of accumulators that fit the 32 registers.
inline constexpr int kBlockRows = 6, kBlockColumns = 4;
// The same for few rows, where the codes of a column and what unpacks them need registers too.
inline constexpr int fused_columns(int rows) { return rows == 1 ? 8 : rows <= 6 ? 4 : 2; }

inline F zero() { return _mm512_setzero_ps(); }
inline F splat(float x) { return _mm512_set1_ps(x); }
inline F load(const float* p) { return _mm512_loadu_ps(p); }
inline I load_words(const void* p) { return _mm512_loadu_si512(p); }
inline void store(float* p, F x) { _mm512_storeu_ps(p, x); }
inline F add(F a, F b) { return _mm512_add_ps(a, b); }
inline F sub(F a, F b) { return _mm512_sub_ps(a, b); }
inline F mul(F a, F b) { return _mm512_mul_ps(a, b); }
inline F div(F a, F b) { return _mm512_div_ps(a, b); }
inline F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
// The second operand is the result where either is NaN.
inline F max(F a, F b) { return _mm512_max_ps(a, b); }
inline F min(F a, F b) { return _mm512_min_ps(a, b); }
inline float sum_lanes(F x) { return _mm512_reduce_add_ps(x); }
inline float max_lanes(F x) { return _mm512_reduce_max_ps(x); }
inline float min_lanes(F x) { return _mm512_reduce_min_ps(x); }
inline float first_lane(F x) { return _mm512_cvtss_f32(x); }
inline F sqrt(F x) { return _mm512_sqrt_ps(x); }
inline F round_to_integer(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT); }
// x * 2^n for integral n; overflow gives infinity, underflow rounds once.
inline F scale_by_power(F x, F n) { return _mm512_scalef_ps(x, n); }

using Mask = __mmask16;
inline Mask greater(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
inline Mask equal(F a, F b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline Mask both(Mask a, Mask b) { return a & b; }
inline Mask either(Mask a, Mask b) { return a | b; }
inline F select(Mask m, F yes, F no) { return _mm512_mask_blend_ps(m, no, yes); }
inline uint32_t bits(Mask m) { return m; }

inline F bf16_low(I w) { return _mm512_castsi512_ps(_mm512_slli_epi32(w, 16)); }
inline F bf16_high(I w) {
  return _mm512_castsi512_ps(_mm512_and_si512(w, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}
// byte_code and nibble_code unpack piece J of the words at p. They have only two ports to run on,
// and one of them alone shifts or permutes: at one row the count of these instructions is the speed.
// A load at a higher address is a shift to the right; it reads up to 3 bytes beyond the words: codes
// are followed by scales.
//
// A byte becomes a float in place: with the sign inverted (code + 128), as low bits of the mantissa
// of 2^23 or 2^15.
template <int J>
inline F byte_code(const uint32_t* p) {
  constexpr bool kLow = J % 2 == 0;
  const I w = load_words(reinterpret_cast<const char*>(p) + J / 2 * 2);
  const I mask = _mm512_set1_epi32(kLow ? 0xff : 0xff00);
  const I magic = _mm512_set1_epi32(kLow ? 0x4b000080 : 0x47008000);
  constexpr int kAndThenXor = 0x6a;
  const I biased = _mm512_ternarylogic_epi32(w, mask, magic, kAndThenXor);
  return sub(_mm512_castsi512_ps(biased), splat(kLow ? 0x1p23f + 128 : 0x1p15f + 128));
}
// A permutation reads only the low four bits of an index, so it looks up code - 8 without a mask.
template <int J>
inline F nibble_code(const uint32_t* p) {
  const F table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  I w = load_words(reinterpret_cast<const char*>(p) + J / 2);
  if constexpr (J % 2 > 0) w = _mm512_srli_epi32(w, 4);
  return _mm512_permutexvar_ps(w, table);
}
inline F f16_low(I w) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(w)); }
inline F f16_high(I w) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(w, 16))); }

inline F load_bf16(const uint16_t* p) {
  const I wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
// Rounded to nearest even; the bits of a bf16 in the low half of each word.
inline I bf16_words(F x) {
  const I u = _mm512_castps_si512(x);
  const I odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const I rounded = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
  const I quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
  const Mask nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16);
}
inline void store_bf16(uint16_t* p, F x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(bf16_words(x)));
}
inline F round_bf16(F x) { return _mm512_castsi512_ps(_mm512_slli_epi32(bf16_words(x), 16)); }
// The first n < kWidth elements.
inline F load_bf16_part(const uint16_t* p, int n) {
  const __m256i narrow = _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1u), p);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(narrow), 16));
}
inline F load_part(const float* p, int n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), p);
}
inline void store_part(float* p, F x, int n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), x);
}
inline void store_bf16_part(uint16_t* p, F x, int n) {
  _mm256_mask_storeu_epi16(p, static_cast<__mmask16>((1u << n) - 1u),
                           _mm512_cvtepi32_epi16(bf16_words(x)));
}
inline F lane_numbers() {
  return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// 2 * kWidth bf16 as the elements at even and at odd places: no widening, which has but one port.
struct Pair {
  F even, odd;
};
inline Pair load_bf16_pair(const uint16_t* p) {
  const I w = load_words(p);
  return {bf16_low(w), bf16_high(w)};
}
inline void store_bf16_pair(uint16_t* p, Pair x) {
  const I words = _mm512_or_si512(bf16_words(x.even), _mm512_slli_epi32(bf16_words(x.odd), 16));
  _mm512_storeu_si512(p, words);
}

// Lane i of the result: the sum of lanes i and i ^ kBit of a or, where i & kBit, of b.
template <int kBit>
inline F fold(F a, F b) {
  constexpr unsigned kFromB = kBit == 1 ? 0xaaaa : kBit == 2 ? 0xcccc : kBit == 4 ? 0xf0f0 : 0xff00;
  const I lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const I partners = _mm512_xor_si512(lanes, _mm512_set1_epi32(kBit));
  const I from = _mm512_mask_or_epi32(partners, kFromB, partners, _mm512_set1_epi32(16));
  return add(_mm512_mask_blend_ps(kFromB, a, b), _mm512_permutex2var_ps(a, from, b));
}
// The sums of kWidth vectors, one per lane: half as many vectors after every step, each holding
// partial sums of twice as many of the inputs.
inline F sums_of_vectors(const float* vectors) {
  F a[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const float* from = vectors + 64 * i;
    a[i] = fold<2>(fold<1>(load(from), load(from + 16)), fold<1>(load(from + 32), load(from + 48)));
  }
  return fold<8>(fold<4>(a[0], a[1]), fold<4>(a[2], a[3]));
}
