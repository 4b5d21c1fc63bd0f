// The inner loops of gated.inl in the vocabulary of simd_*.inl. Lanes are value dimensions, so
// every sum runs in the order of the contract.

inline void exp_block(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i += kWidth) {
    const int count = clamp_count(n - i);
    store_part(out + i, exp(load_part(x + i, count)), count);
  }
}

inline void delta_replay(float* s, const float* k, const float* d, float decay,
                         const DeltaDims& dims) {
  for (int64_t i = 0; i < dims.key; ++i) {
    const F key = splat(k[i]), factor = splat(decay);
    float* row = s + i * dims.value;
    for (int64_t v = 0; v < dims.value; v += kWidth) {
      const int count = clamp_count(dims.value - v);
      const F next = add(mul(load_part(row + v, count), factor), mul(key, load_part(d + v, count)));
      store_part(row + v, next, count);
    }
  }
}

// Lanes v .. v + kVectors * kWidth of a head, all of them full.
template <int kVectors>
inline void delta_lanes(const DeltaStep& a, const DeltaDims& dims, int64_t v) {
  const F factor = splat(a.decay), beta = splat(a.beta);
  F learnt[kVectors], d[kVectors], o[kVectors];
  for (int j = 0; j < kVectors; ++j) learnt[j] = o[j] = zero();
  for (int64_t i = 0; i < dims.key; ++i) {
    const float* row = a.from + i * dims.value + v;
    const F key = splat(a.k[i]);
    for (int j = 0; j < kVectors; ++j) {
      learnt[j] = add(learnt[j], mul(mul(load(row + j * kWidth), factor), key));
    }
  }
  for (int j = 0; j < kVectors; ++j) {
    d[j] = mul(sub(load(a.v + v + j * kWidth), learnt[j]), beta);
    store(a.d + v + j * kWidth, d[j]);
  }
  for (int64_t i = 0; i < dims.key; ++i) {
    const float* row = a.from + i * dims.value + v;
    const F key = splat(a.k[i]), query = splat(a.q[i]);
    for (int j = 0; j < kVectors; ++j) {
      const F next = add(mul(load(row + j * kWidth), factor), mul(key, d[j]));
      if (a.to != nullptr) store(a.to + i * dims.value + v + j * kWidth, next);
      o[j] = add(o[j], mul(next, query));
    }
  }
  for (int j = 0; j < kVectors; ++j) store(a.o + v + j * kWidth, o[j]);
}

inline void delta_step(const DeltaStep& a, const DeltaDims& dims) {
  int64_t v = 0;
  for (; v + 4 * kWidth <= dims.value; v += 4 * kWidth) delta_lanes<4>(a, dims, v);
  for (; v + kWidth <= dims.value; v += kWidth) delta_lanes<1>(a, dims, v);
  for (; v < dims.value; ++v) delta_lane(a, dims, v);
}

inline uint16_t bf16_bits(float x) {
  uint16_t bits = 0;
  store_bf16_part(&bits, splat(x), 1);
  return bits;
}
