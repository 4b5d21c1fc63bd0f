// The four dot products, in the vocabulary of simd_*.inl. Lanes are outputs, so every width of
// vector and every blocking adds the inputs of an output in the same order: the same bits.
//
// Up to 8 rows (decode, batches, verification): codes are unpacked in registers on their way from
// the load to the fmas of all rows. More rows (prefill): a 32-group of a panel is unpacked once
// into a buffer of floats in L1, which blocks of rows read.

inline constexpr int kGroup = 32;
inline constexpr int kLineWords = 16;
inline constexpr int kFarWords = 2048, kNearWords = 512;
inline constexpr int kScaleRowsAhead = 4;

// Once per line of the stream. The hardware's own prefetch stops at pages and leaves a quarter of
// the bandwidth unused; a far one into L2 and a near one into L1 were the best of the distances and
// hints tried (docs/cpu.md). Prefetching beyond the end of a mapping does nothing.
inline void prefetch_stream(const uint32_t* words, const uint32_t* far) {
  _mm_prefetch(reinterpret_cast<const char*>(far), _MM_HINT_T1);
  _mm_prefetch(reinterpret_cast<const char*>(words + kNearWords), _MM_HINT_T0);
}

// What the formats differ in: inputs per word, rows of scales, and how a word is unpacked.
struct Bf16 {
  static constexpr int kInputs = 2;
  static constexpr bool kScaled = false, kMin = false;
  static int64_t scale_rows(int64_t) { return 0; }
  template <int J>
  static F code(const uint32_t* w) {
    return J == 0 ? bf16_low(load_words(w)) : bf16_high(load_words(w));
  }
};
struct Q8 {
  static constexpr int kInputs = 4;
  static constexpr bool kScaled = true, kMin = false;
  static int64_t scale_rows(int64_t kp) { return (kp + 63) / 64; }
  template <int J>
  static F code(const uint32_t* w) {
    return byte_code<J>(w);
  }
};
struct Q4 {
  static constexpr int kInputs = 8;
  static constexpr bool kScaled = true, kMin = false;
  static int64_t scale_rows(int64_t kp) { return (kp + 63) / 64; }
  template <int J>
  static F code(const uint32_t* w) {
    return nibble_code<J>(w);
  }
};
struct Q4m : Q4 {
  static constexpr bool kMin = true;
  static int64_t scale_rows(int64_t kp) { return kp / 32; }
};

// Scale and middle of the outputs at `scales` (a panel's first row of scales, plus the column) in
// group g.
template <class Format>
inline F group_scale(const uint32_t* scales, int64_t g) {
  if constexpr (Format::kMin) return f16_low(load_words(scales + g * kLanes));
  const I words = load_words(scales + g / 2 * kLanes);
  return g % 2 == 0 ? f16_low(words) : f16_high(words);
}
template <class Format>
inline F group_middle(const uint32_t* scales, int64_t g, F scale) {
  return add(f16_high(load_words(scales + g * kLanes)), mul(splat(8), scale));
}

template <class Format>
inline void prefetch_scales(const uint32_t* scales, int64_t rows) {
  if constexpr (Format::kScaled) {
    for (int64_t i = 0; i < rows * kLanes; i += kLineWords) {
      _mm_prefetch(reinterpret_cast<const char*>(scales + i), _MM_HINT_T0);
    }
  }
}

template <int J, int N, class Body>
inline void unrolled(Body body) {
  if constexpr (J < N) {
    body.template operator()<J>();
    unrolled<J + 1, N>(body);
  }
}

// x as floats [kp / 32][rows][32], and the sum of every group [kp / 32][rows] where it is asked for.
template <bool kSums>
inline void convert_inputs(const DotArgs& a, float* x, float* sums) {
  for (int64_t g = 0; g < a.kp / kGroup; ++g) {
    const int64_t input = a.k0 + g * kGroup;
    const uint16_t* from = a.x + input / kLanes * a.rows * kLanes + input % kLanes;
    for (int64_t row = 0; row < a.rows; ++row) {
      float* to = x + (g * a.rows + row) * kGroup;
      for (int i = 0; i < kGroup; i += kWidth) store(to + i, load_bf16(from + row * kLanes + i));
    }
  }
  if constexpr (kSums) {
    // Four chains at a time: one addition waits for the one before it.
    const int64_t n = a.kp / kGroup * a.rows;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      const float* from = x + i * kGroup;
      for (int k = 0; k < kGroup; ++k) {
        s0 += from[k];
        s1 += from[kGroup + k];
        s2 += from[2 * kGroup + k];
        s3 += from[3 * kGroup + k];
      }
      sums[i] = s0, sums[i + 1] = s1, sums[i + 2] = s2, sums[i + 3] = s3;
    }
    for (; i < n; ++i) {
      float s = 0;
      for (int k = 0; k < kGroup; ++k) s += x[i * kGroup + k];
      sums[i] = s;
    }
  }
}

// Few rows: one group of the panel at `codes`, unpacked between the load and the fmas of all rows.
// x: [kRows][32], out: [kRows][128].
template <class Format, int kRows>
inline void fused_group(const uint32_t* codes, const uint32_t* ahead, const uint32_t* scales,
                        int64_t g, const float* x, const float* sums, bool fresh, float* out) {
  constexpr int kColumns = fused_columns(kRows);
  for (int c = 0; c < kLanes; c += kColumns * kWidth) {
    F part[kRows][kColumns];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kColumns; ++v) {
        part[r][v] = Format::kScaled || fresh ? zero() : load(out + r * kLanes + c + v * kWidth);
      }
    }
    for (int i = 0; i < kGroup / Format::kInputs; ++i) {
      const uint32_t* words = codes + i * kLanes + c;
      if constexpr (kRows == 1) {
        // A column at a time: one vector of words in registers, and its loads shared by two codes.
        F inputs[Format::kInputs];
#pragma GCC unroll 8
        for (int j = 0; j < Format::kInputs; ++j) inputs[j] = splat(x[i * Format::kInputs + j]);
#pragma GCC unroll 8
        for (int v = 0; v < kColumns; ++v) {
          // Without the barrier the compiler puts all prefetches and loads of a row into one burst.
          asm volatile("" ::: "memory");
          if (v * kWidth % kLineWords == 0) {
            prefetch_stream(words + v * kWidth, ahead + i * kLanes + c + v * kWidth);
          }
          unrolled<0, Format::kInputs>([&]<int J>() {
            part[0][v] = fma(inputs[J], Format::template code<J>(words + v * kWidth), part[0][v]);
          });
        }
        continue;
      }
#pragma GCC unroll 8
      for (int v = 0; v < kColumns; ++v) {
        if (v * kWidth % kLineWords == 0) {
          prefetch_stream(words + v * kWidth, ahead + i * kLanes + c + v * kWidth);
        }
      }
      unrolled<0, Format::kInputs>([&]<int J>() {
        F code[kColumns];
#pragma GCC unroll 8
        for (int v = 0; v < kColumns; ++v) code[v] = Format::template code<J>(words + v * kWidth);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const F input = splat(x[r * kGroup + i * Format::kInputs + J]);
#pragma GCC unroll 8
          for (int v = 0; v < kColumns; ++v) part[r][v] = fma(input, code[v], part[r][v]);
        }
      });
    }
#pragma GCC unroll 8
    for (int v = 0; v < kColumns; ++v) {
      const int column = c + v * kWidth;
      F scale = zero(), middle = zero();
      if constexpr (Format::kScaled) scale = group_scale<Format>(scales + column, g);
      if constexpr (Format::kMin) middle = group_middle<Format>(scales + column, g, scale);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        float* to = out + r * kLanes + column;
        F sum = part[r][v];
        if constexpr (Format::kScaled) sum = add(fresh ? zero() : load(to), mul(scale, sum));
        if constexpr (Format::kMin) sum = add(sum, mul(middle, splat(sums[r])));
        store(to, sum);
      }
    }
  }
}

template <class Format, int kRows>
inline void dot_few(const DotArgs& a, const float* x, const float* sums) {
  const int64_t code_rows = a.kp / Format::kInputs, scale_rows = Format::scale_rows(a.kp);
  constexpr int kGroupRows = kGroup / Format::kInputs;
  const uint32_t* codes = a.tile;
  const uint32_t* const codes_end = a.tile + a.panels * code_rows * kLanes;
  prefetch_scales<Format>(codes_end, kScaleRowsAhead);
  for (int64_t p = 0; p < a.panels; ++p) {
    const uint32_t* scales = codes_end + p * scale_rows * kLanes;
    for (int64_t g = 0; g < a.kp / kGroup; ++g, codes += kGroupRows * kLanes) {
      // Scales are a second stream. Behind the last codes lie the scales, which have been read by
      // then, and behind them most often the next chunk.
      if (Format::kMin || g % 2 == 0) {
        const int64_t row = Format::kMin ? g : g / 2;
        prefetch_scales<Format>(scales + (row + kScaleRowsAhead) * kLanes, 1);
      }
      const uint32_t* ahead = codes + kFarWords;
      if (ahead >= codes_end) ahead += a.panels * scale_rows * kLanes;
      fused_group<Format, kRows>(codes, ahead, scales, g, x + g * kRows * kGroup, sums + g * kRows,
                                 g == 0 && !a.accumulate, a.out + p * kRows * kLanes);
    }
  }
}

// A group of a panel as floats.
struct Unpacked {
  float weights[kGroup * kLanes];
  float scale[kLanes];
  float middle[kLanes];
};

template <class Format>
inline void unpack_group(const uint32_t* codes, const uint32_t* scales, int64_t g, Unpacked& to) {
  for (int i = 0; i < kGroup / Format::kInputs; ++i) {
    float* weights = to.weights + i * Format::kInputs * kLanes;
#pragma GCC unroll 4
    for (int c = 0; c < kLanes; c += kWidth) {
      const uint32_t* w = codes + i * kLanes + c;
      if (c % kLineWords == 0) prefetch_stream(w, w + kFarWords);
      unrolled<0, Format::kInputs>([&]<int J>() {
        store(weights + J * kLanes + c, Format::template code<J>(w));
      });
    }
  }
  if constexpr (Format::kScaled) {
    for (int c = 0; c < kLanes; c += kWidth) {
      const F scale = group_scale<Format>(scales + c, g);
      store(to.scale + c, scale);
      if constexpr (Format::kMin) store(to.middle + c, group_middle<Format>(scales + c, g, scale));
    }
  }
}

// One unpacked group for kRows rows and all outputs of the panel. x: [kRows][32], out: [kRows][128].
template <class Format, int kRows>
inline void group_of_rows(const Unpacked& from, const float* x, const float* sums, bool fresh,
                          float* out) {
  for (int c = 0; c < kLanes; c += kBlockColumns * kWidth) {
    F part[kRows][kBlockColumns];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kBlockColumns; ++v) {
        part[r][v] = Format::kScaled || fresh ? zero() : load(out + r * kLanes + c + v * kWidth);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < kGroup; ++k) {
      F weights[kBlockColumns];
#pragma GCC unroll 8
      for (int v = 0; v < kBlockColumns; ++v) {
        weights[v] = load(from.weights + k * kLanes + c + v * kWidth);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const F input = splat(x[r * kGroup + k]);
#pragma GCC unroll 8
        for (int v = 0; v < kBlockColumns; ++v) part[r][v] = fma(input, weights[v], part[r][v]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kBlockColumns; ++v) {
        float* to = out + r * kLanes + c + v * kWidth;
        if constexpr (Format::kScaled) {
          const int column = c + v * kWidth;
          part[r][v] = add(fresh ? zero() : load(to), mul(load(from.scale + column), part[r][v]));
          if constexpr (Format::kMin) {
            part[r][v] = add(part[r][v], mul(load(from.middle + column), splat(sums[r])));
          }
        }
        store(to, part[r][v]);
      }
    }
  }
}

template <class Format>
inline void dot_many(const DotArgs& a, const float* x, const float* sums) {
  const int64_t code_rows = a.kp / Format::kInputs, scale_rows = Format::scale_rows(a.kp);
  constexpr int kGroupRows = kGroup / Format::kInputs;
  const int64_t blocks = (a.rows + kBlockRows - 1) / kBlockRows;
  alignas(64) Unpacked unpacked;
  for (int64_t p = 0; p < a.panels; ++p) {
    const uint32_t* codes = a.tile + p * code_rows * kLanes;
    const uint32_t* scales = a.tile + (a.panels * code_rows + p * scale_rows) * kLanes;
    for (int64_t g = 0; g < a.kp / kGroup; ++g) {
      unpack_group<Format>(codes + g * kGroupRows * kLanes, scales, g, unpacked);
      const bool fresh = g == 0 && !a.accumulate;
      // Blocks of nearly equal size: a last block of one row would wait for its own additions.
      for (int64_t b = 0, row = 0; b < blocks; ++b) {
        const int64_t end = (b + 1) * a.rows / blocks;
        const float* in = x + (g * a.rows + row) * kGroup;
        const float* sum = sums + g * a.rows + row;
        float* out = a.out + (p * a.rows + row) * kLanes;
        switch (end - row) {
          case 1: group_of_rows<Format, 1>(unpacked, in, sum, fresh, out); break;
          case 2: group_of_rows<Format, 2>(unpacked, in, sum, fresh, out); break;
          case 3: group_of_rows<Format, 3>(unpacked, in, sum, fresh, out); break;
          case 4: group_of_rows<Format, 4>(unpacked, in, sum, fresh, out); break;
          case 5: group_of_rows<Format, 5>(unpacked, in, sum, fresh, out); break;
          case 6: group_of_rows<Format, 6>(unpacked, in, sum, fresh, out); break;
        }
        row = end;
      }
    }
  }
}

template <class Format>
void dot(const DotArgs& a) {
  const int64_t groups = a.kp / kGroup;
  float* x = thread_scratch(groups * a.rows * (kGroup + 1));
  float* sums = x + groups * a.rows * kGroup;
  convert_inputs<Format::kMin>(a, x, sums);
  switch (a.rows) {
    case 1: return dot_few<Format, 1>(a, x, sums);
    case 2: return dot_few<Format, 2>(a, x, sums);
    case 3: return dot_few<Format, 3>(a, x, sums);
    case 4: return dot_few<Format, 4>(a, x, sums);
    case 5: return dot_few<Format, 5>(a, x, sums);
    case 6: return dot_few<Format, 6>(a, x, sums);
    case 7: return dot_few<Format, 7>(a, x, sums);
    case 8: return dot_few<Format, 8>(a, x, sums);
    default: return dot_many<Format>(a, x, sums);
  }
}
