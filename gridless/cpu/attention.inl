// decode_attention, in the vocabulary of simd_*.inl. A key or value row is converted to floats once
// for up to kQueries queries of its head; tokens go by kWidth, so that sums over lanes and
// exponentials are vectors over tokens.

inline constexpr int kQueries = 4;
inline constexpr int kKeysAhead = 16;     // tokens
inline constexpr int kLineElements = 32;  // bf16 elements of a cache line

template <auto kHint>  // an enumerator of g++, a number of clang
inline void prefetch(const uint16_t* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), kHint);
}

// Tokens of the next vector of tokens, where `left` remain.
inline int clamp_count(int64_t left) {
  return left <= 0 ? 0 : left < kWidth ? static_cast<int>(left) : kWidth;
}

// Where a head's elements lie in a key row (half-split) or a value row, as vectors. Where halves
// are whole pairs of vectors, all vectors of a head are loaded, summed and kept in pairs of even and
// odd elements; otherwise the pieces of a half are full vectors and a rest.
struct HeadShape {
  int64_t half;          // D / 2
  int64_t vectors;       // ceil(half / kWidth) per half
  int rest;              // elements of the last one
  bool paired;           // half is a multiple of 2 * kWidth
  int64_t query_floats;  // of a query, padded to whole vectors
};

// Piece v, which is at p.
inline F load_piece(const uint16_t* p, int64_t v, const HeadShape& shape) {
  const bool whole = v + 1 < shape.vectors || shape.rest == kWidth;
  return whole ? load_bf16(p) : load_bf16_part(p, shape.rest);
}

// Partial sums (a vector per token and query) of kQ queries with kWidth tokens' keys; the rows
// beyond `tokens` are skipped. query: [kQ][shape.query_floats], sums: [kQ][kWidth] vectors.
template <int kQ, bool kPaired>
inline void multiply_keys(const uint16_t* low, const uint16_t* high, const uint16_t* values,
                          int64_t stride, int tokens, const float* query, const HeadShape& shape,
                          float* sums) {
  const int64_t padded = shape.query_floats;
  for (int t = 0; t < tokens; ++t) {
    F part[kQ];
#pragma GCC unroll 4
    for (int q = 0; q < kQ; ++q) part[q] = zero();
    for (int64_t v = 0; v < shape.vectors; v += kPaired ? 2 : 1) {
      const uint16_t* lows = low + t * stride + v * kWidth;
      const uint16_t* highs = high + t * stride + v * kWidth;
      constexpr int kVectors = kPaired ? 4 : 2;
      // Spread over the work: the keys of later tokens, and the values of this one, which are read
      // after all keys of the page.
      prefetch<_MM_HINT_T0>(lows + kKeysAhead * stride);
      prefetch<_MM_HINT_T0>(highs + kKeysAhead * stride);
#pragma GCC unroll 2
      for (int i = 0; i < kVectors * kWidth; i += kLineElements) {
        prefetch<_MM_HINT_T1>(values + t * stride + 2 * v * kWidth + i);
      }
      F key[kVectors];
      if constexpr (kPaired) {
        const Pair l = load_bf16_pair(lows), h = load_bf16_pair(highs);
        key[0] = l.even, key[1] = l.odd, key[2] = h.even, key[3] = h.odd;
      } else {
        key[0] = load_piece(lows, v, shape), key[1] = load_piece(highs, v, shape);
      }
#pragma GCC unroll 4
      for (int q = 0; q < kQ; ++q) {
#pragma GCC unroll 4
        for (int k = 0; k < kVectors; ++k) {
          part[q] = fma(load(query + q * padded + (2 * v + k) * kWidth), key[k], part[q]);
        }
      }
    }
#pragma GCC unroll 4
    for (int q = 0; q < kQ; ++q) store(sums + (q * kWidth + t) * kWidth, part[q]);
  }
}

// out[q][..] += sum over tokens of p[q][t] * value row t, for kV vectors of lanes. `ahead`: rows of
// the same stride that will be read next.
template <int kQ, int kV, bool kPaired>
inline void multiply_values(const uint16_t* values, const uint16_t* ahead, int64_t stride,
                            int64_t tokens, const float* p, int rest, float* out,
                            int64_t out_stride) {
  F acc[kQ][kV];
#pragma GCC unroll 4
  for (int q = 0; q < kQ; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) acc[q][v] = zero();
  }
  for (int64_t t = 0; t < tokens; ++t) {
    F value[kV];
    const uint16_t* from = values + t * stride;
#pragma GCC unroll 4
    for (int i = 0; i < kV * kWidth; i += kLineElements) {
      prefetch<_MM_HINT_T1>(ahead + t * stride + i);
    }
    if constexpr (kPaired) {
#pragma GCC unroll 4
      for (int v = 0; v < kV; v += 2) {
        const Pair pair = load_bf16_pair(from + v * kWidth);
        value[v] = pair.even, value[v + 1] = pair.odd;
      }
    } else {
#pragma GCC unroll 4
      for (int v = 0; v < kV - 1; ++v) value[v] = load_bf16(from + v * kWidth);
      const uint16_t* at = from + (kV - 1) * kWidth;
      value[kV - 1] = rest == kWidth ? load_bf16(at) : load_bf16_part(at, rest);
    }
#pragma GCC unroll 4
    for (int q = 0; q < kQ; ++q) {
      const F weight = splat(p[q * kPageTokens + t]);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) acc[q][v] = fma(weight, value[v], acc[q][v]);
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kQ; ++q) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      float* to = out + q * out_stride + v * kWidth;
      store(to, add(load(to), acc[q][v]));
    }
  }
}

template <int kQ>
inline void multiply_value_rows(const uint16_t* values, const uint16_t* ahead, int64_t stride,
                                int64_t tokens, const float* p, int64_t dim, bool paired,
                                float* out, int64_t out_stride) {
  const auto four = paired ? multiply_values<kQ, 4, true> : multiply_values<kQ, 4, false>;
  int64_t i = 0;
  for (; i + 4 * kWidth <= dim; i += 4 * kWidth) {
    four(values + i, ahead + i, stride, tokens, p, kWidth, out + i, out_stride);
  }
  for (; i < dim; i += kWidth) {
    const int rest = dim - i < kWidth ? static_cast<int>(dim - i) : kWidth;
    multiply_values<kQ, 1, false>(values + i, ahead + i, stride, tokens, p, rest, out + i,
                                  out_stride);
  }
}

// Calls body.operator()<n>() for n = count, 1 .. kQueries.
template <class Body>
inline void with_queries(int64_t count, Body body) {
  switch (count) {
    case 1: body.template operator()<1>(); break;
    case 2: body.template operator()<2>(); break;
    case 3: body.template operator()<3>(); break;
    default: body.template operator()<4>(); break;
  }
}

// The state of one row. Queries are numbered j * groups + g, those of one key/value head together.
struct Attention {
  const DecodeAttentionArgs& a;
  HeadShape shape;
  int64_t out_floats;                // per query, padded to whole vectors
  float* queries;                    // [heads * groups][query_floats]: low, high, low, ...
  float* out;                        // [heads * groups][out_floats]
  float* p;                          // [heads * groups][128]: scores, then probabilities, of a page
  float* max;                        // [heads * groups]
  float* sum;                        // [heads * groups]
  float* partial;                    // [kQueries][kWidth][kWidth]
};

inline void load_queries(const Attention& s, int64_t row) {
  const DecodeAttentionArgs& a = s.a;
  const int64_t half = s.shape.half;
  for (int64_t j = 0; j < a.heads; ++j) {
    for (int64_t g = 0; g < a.groups; ++g) {
      const uint16_t* low = a.qkv + (g * a.rows + row) * a.width_stride + j * half;
      const uint16_t* high = low + a.heads * half;
      float* to = s.queries + (j * a.groups + g) * s.shape.query_floats;
      for (int64_t v = 0; v < s.shape.vectors; v += s.shape.paired ? 2 : 1) {
        float* at = to + 2 * v * kWidth;
        if (s.shape.paired) {
          const Pair l = load_bf16_pair(low + v * kWidth), h = load_bf16_pair(high + v * kWidth);
          store(at, l.even), store(at + kWidth, l.odd);
          store(at + 2 * kWidth, h.even), store(at + 3 * kWidth, h.odd);
        } else {
          store(at, load_piece(low + v * kWidth, v, s.shape));
          store(at + kWidth, load_piece(high + v * kWidth, v, s.shape));
        }
      }
    }
  }
}

inline void score_page(const Attention& s, const uint16_t* page, int64_t tokens) {
  const DecodeAttentionArgs& a = s.a;
  const int64_t half = s.shape.half, stride = a.width_stride;
  const uint16_t* values = page + kPageTokens * stride;
  for (int64_t first = 0; first < tokens; first += kWidth) {
    const int n = clamp_count(tokens - first);
    const uint16_t* keys = page + first * stride;
    for (int64_t j = 0; j < a.heads; ++j) {
      for (int64_t g = 0; g < a.groups; g += kQueries) {
        const int64_t count = a.groups - g < kQueries ? a.groups - g : kQueries;
        const int64_t query = j * a.groups + g;
        with_queries(count, [&]<int kQ>() {
          const auto multiply =
              s.shape.paired ? multiply_keys<kQ, true> : multiply_keys<kQ, false>;
          multiply(keys + j * half, keys + (a.heads + j) * half,
                   values + first * stride + j * a.head_dim, stride, n,
                   s.queries + query * s.shape.query_floats, s.shape, s.partial);
        });
        for (int64_t q = 0; q < count; ++q) {
          const F scores = sums_of_vectors(s.partial + q * kWidth * kWidth);
          const F valid = mul(scores, splat(a.scale));
          const Mask inside = greater(splat(static_cast<float>(n)), lane_numbers());
          store(s.p + (query + q) * kPageTokens + first,
                select(inside, valid, splat(-__builtin_inff())));
        }
      }
    }
  }
}

// Scores to probabilities (rounded to bf16), and the running maximum, sum and outputs with them.
inline void soften(const Attention& s, int64_t query, int64_t tokens) {
  float* p = s.p + query * kPageTokens;
  F largest = splat(s.max[query]);
  for (int64_t t = 0; t < tokens; t += kWidth) largest = max(largest, load(p + t));
  const float new_max = max_lanes(largest);
  const F correction = exp(splat(s.max[query] - new_max));
  s.max[query] = new_max;
  F sum = zero();
  for (int64_t t = 0; t < tokens; t += kWidth) {
    const F e = exp(sub(load(p + t), splat(new_max)));
    sum = add(sum, e);
    store(p + t, round_bf16(e));
  }
  s.sum[query] = s.sum[query] * first_lane(correction) + sum_lanes(sum);
  float* out = s.out + query * s.out_floats;
  for (int64_t i = 0; i < s.out_floats; i += kWidth) store(out + i, mul(load(out + i), correction));
}

inline void attend_row(const Attention& s, int64_t row) {
  const DecodeAttentionArgs& a = s.a;
  const int64_t queries = a.heads * a.groups;
  const int64_t slot = a.row_table[a.rows + row], position = a.row_table[2 * a.rows + row];
  load_queries(s, row);
  for (int64_t i = 0; i < queries * s.out_floats; ++i) s.out[i] = 0;
  for (int64_t i = 0; i < queries; ++i) {
    s.max[i] = -__builtin_inff();
    s.sum[i] = 0;
  }
  for (int64_t first = 0; first <= position; first += kPageTokens) {
    const int64_t left = position + 1 - first;
    const int64_t tokens = left < kPageTokens ? left : kPageTokens;
    const int64_t page = a.pages[slot * a.max_pages + first / kPageTokens];
    const uint16_t* keys = a.cache + page * 2 * kPageTokens * a.width_stride;
    score_page(s, keys, tokens);
    for (int64_t i = 0; i < queries; ++i) soften(s, i, tokens);
    const uint16_t* values = keys + kPageTokens * a.width_stride;
    // The keys of the next page come in while the values of this one, which came in with its keys,
    // are worked on. After the last page the prefetches ask for what is there already.
    const bool last = first + kPageTokens > position;
    const int64_t next_page = last ? page : a.pages[slot * a.max_pages + first / kPageTokens + 1];
    const uint16_t* next = last ? values : a.cache + next_page * 2 * kPageTokens * a.width_stride;
    for (int64_t j = 0; j < a.heads; ++j) {
      for (int64_t g = 0; g < a.groups; g += kQueries) {
        const int64_t query = j * a.groups + g;
        with_queries(a.groups - g, [&]<int kQ>() {
          multiply_value_rows<kQ>(values + j * a.head_dim, next + j * a.head_dim, a.width_stride,
                                  tokens, s.p + query * kPageTokens, a.head_dim, s.shape.paired,
                                  s.out + query * s.out_floats, s.out_floats);
        });
      }
    }
  }
}

// Rounds the elements of a query to the lanes `flat` .. of the row's output.
inline void write_out(const Attention& s, const float* from, int64_t flat, int64_t row) {
  constexpr int kPiece = 2 * kWidth;
  const DecodeAttentionArgs& a = s.a;
  for (int64_t i = 0; i < a.head_dim; i += kPiece) {
    uint16_t rounded[kPiece];
    if (s.shape.paired) {
      store_bf16_pair(rounded, {load(from + i), load(from + i + kWidth)});
    } else {
      for (int c = 0; c < kPiece && i + c < s.out_floats; c += kWidth) {
        store_bf16(rounded + c, load(from + i + c));
      }
    }
    // A piece may cross a panel.
    const int64_t n = a.head_dim - i < kPiece ? a.head_dim - i : kPiece;
    for (int64_t c = 0; c < n;) {
      const int64_t lane = flat + i + c, room = kLanes - lane % kLanes;
      const int64_t count = n - c < room ? n - c : room;
      __builtin_memcpy(a.out + (lane / kLanes * a.rows + row) * kLanes + lane % kLanes, rounded + c,
                       static_cast<size_t>(count) * sizeof(uint16_t));
      c += count;
    }
  }
}

void decode_attention(const DecodeAttentionArgs& a) {
  const int64_t half = a.head_dim / 2, vectors = (half + kWidth - 1) / kWidth;
  const int64_t width = a.heads * a.head_dim, queries = a.heads * a.groups;
  const int64_t query_floats = 2 * vectors * kWidth;
  const int64_t out_floats = (a.head_dim + kWidth - 1) / kWidth * kWidth;
  float* memory = thread_scratch(queries * (query_floats + out_floats + kPageTokens + 2 * kWidth) +
                                 kQueries * kWidth * kWidth);
  Attention s{a,
              {half, vectors, static_cast<int>(half - (vectors - 1) * kWidth),
               half % (2 * kWidth) == 0, query_floats},
              out_floats};
  s.partial = memory;
  s.queries = s.partial + kQueries * kWidth * kWidth;
  s.out = s.queries + queries * query_floats;
  s.p = s.out + queries * out_floats;
  s.max = s.p + queries * kPageTokens;
  s.sum = s.max + queries;
  // Sums of tokens that are not there are read too, and then replaced: they need only be numbers.
  for (int64_t i = 0; i < kQueries * kWidth * kWidth; ++i) s.partial[i] = 0;
  const int64_t panels = (a.groups * width + kLanes - 1) / kLanes;
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int64_t p = 0; p < panels; ++p) {
      __builtin_memset(a.out + (p * a.rows + row) * kLanes, 0, kLanes * sizeof(uint16_t));
    }
    if (a.row_table[3 * a.rows + row] == 0) continue;
    attend_row(s, row);
    for (int64_t g = 0; g < a.groups; ++g) {
      for (int64_t j = 0; j < a.heads; ++j) {
        const int64_t query = j * a.groups + g;
        float* from = s.out + query * out_floats;
        const F sum = splat(s.sum[query]);
        for (int64_t i = 0; i < out_floats; i += kWidth) store(from + i, div(load(from + i), sum));
        write_out(s, from, g * width + j * a.head_dim, row);
      }
    }
  }
}
