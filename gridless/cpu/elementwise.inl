// The composites between the products, in the vocabulary of simd_*.inl.

// e^x within 2 ulp (x >= -87; below, denormals lose bits down to 0): x = n ln 2 + r with
// |r| <= ln 2 / 2, a polynomial for e^r (Cephes), and the power of two put back. Infinity above
// 88.73, NaN for NaN.
inline F exp(F x) {
  x = max(splat(-104.0f), min(splat(89.0f), x));  // 104: half of the least denormal
  const F n = round_to_integer(mul(x, splat(1.44269504f)));
  F r = fma(n, splat(-0.693359375f), x);  // ln 2 in two parts; the first times n is exact
  r = fma(n, splat(2.12194440e-4f), r);
  F y = splat(1.9875691500e-4f);
  y = fma(y, r, splat(1.3981999507e-3f));
  y = fma(y, r, splat(8.3334519073e-3f));
  y = fma(y, r, splat(4.1665795894e-2f));
  y = fma(y, r, splat(1.6666665459e-1f));
  y = fma(y, r, splat(5.0000001201e-1f));
  y = fma(mul(r, r), y, add(r, splat(1.0f)));
  return scale_by_power(y, n);
}

void rms_norm(const RmsNormArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    F sums[4] = {zero(), zero(), zero(), zero()};
    for (int64_t p = 0; p < a.panels; ++p) {
      const float* x = a.x + (p * a.rows + row) * kLanes;
      for (int c = 0; c < kLanes; c += 4 * kWidth) {
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          const F value = load(x + c + v * kWidth);
          sums[v] = fma(value, value, sums[v]);
        }
      }
    }
    const float sum = sum_lanes(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
    const F mean = splat(sum / static_cast<float>(a.width) + a.eps);
    const F inverse = div(splat(1.0f), sqrt(mean));
    for (int64_t p = 0; p < a.panels; ++p) {
      const int64_t at = (p * a.rows + row) * kLanes;
      for (int c = 0; c < kLanes; c += kWidth) {
        const F scaled = mul(load(a.x + at + c), inverse);
        store_bf16(a.out + at + c, mul(scaled, load(a.w + p * kLanes + c)));
      }
    }
  }
}

// Rotates n <= kWidth lanes of both halves.
inline void rotate(const float* lo, const float* hi, const float* cos, const float* sin,
                   uint16_t* out_lo, uint16_t* out_hi, int n) {
  const F l = load_part(lo, n), h = load_part(hi, n);
  const F c = load_part(cos, n), s = load_part(sin, n);
  store_bf16_part(out_lo, sub(mul(l, c), mul(h, s)), n);
  store_bf16_part(out_hi, add(mul(h, c), mul(l, s)), n);
}

void qkv_rope(const QkvRopeArgs& a) {
  const int64_t flat = (a.groups + 2) * a.width, half = a.width / 2;
  const int64_t panels = (flat + kLanes - 1) / kLanes;
  float* buffer = thread_scratch(panels * kLanes);
  for (int64_t row = 0; row < a.rows; ++row) {
    // Queries, key and value do not begin at panels, so a row is first laid out flat.
    const float* y = a.y;
    if (a.rows > 1) {
      for (int64_t p = 0; p < panels; ++p) {
        const float* from = a.y + (p * a.rows + row) * kLanes;
        for (int c = 0; c < kLanes; c += kWidth) store(buffer + p * kLanes + c, load(from + c));
      }
      y = buffer;
    }
    const float* cos = a.cos + row * a.half_stride;
    const float* sin = a.sin + row * a.half_stride;
    for (int64_t part = 0; part < a.groups + 2; ++part) {
      uint16_t* out = a.out + (part * a.rows + row) * a.width_stride;
      const float* from = y + part * a.width;
      const int64_t end = part <= a.groups ? half : a.width;
      for (int64_t i = 0; i < end; i += kWidth) {
        const int n = end - i < kWidth ? static_cast<int>(end - i) : kWidth;
        if (part <= a.groups) {
          rotate(from + i, from + half + i, cos + i, sin + i, out + i, out + half + i, n);
        } else {
          store_bf16_part(out + i, load_part(from + i, n), n);
        }
      }
      for (int64_t i = a.width; i < a.width_stride; ++i) out[i] = 0;
    }
  }
}

void swiglu(const SwigluArgs& a) {
  const int64_t n = a.panels / 2 * a.rows * kLanes;
  for (int64_t i = 0; i < n; i += kWidth) {
    const F gate = load(a.y + i), up = load(a.y + n + i);
    const F denominator = add(splat(1.0f), exp(sub(zero(), gate)));
    store_bf16(a.out + i, mul(div(gate, denominator), up));
  }
}

void add_into(const AddIntoArgs& a) {
  const int64_t n = a.panels * a.rows * kLanes;
  for (int64_t i = 0; i < n; i += kWidth) store(a.x + i, add(load(a.x + i), load(a.y + i)));
}

void topk_insert(const TopkInsertArgs& a) {
  const int64_t slot = a.rows * kLanes;
  for (int64_t p = 0; p < a.panels; ++p) {
    for (int64_t lane = 0; lane < slot; lane += kWidth) {
      F value = load(a.logits + p * slot + lane);
      F id = add(splat(static_cast<float>(a.base + p * kLanes + lane % kLanes)), lane_numbers());
      const Mask valid = greater(splat(static_cast<float>(a.limit)), id);
      const Mask wanted = both(valid, greater(value, load(a.vals + (a.k - 1) * slot + lane)));
      if (bits(wanted) == 0) continue;  // nearly always, once the best are in
      // The newcomer goes before the first smaller one, and from there on all move down by one.
      Mask placed = greater(zero(), zero());
      for (int64_t i = 0; i < a.k; ++i) {
        float* vals = a.vals + i * slot + lane;
        float* ids = a.ids + i * slot + lane;
        const F old_value = load(vals), old_id = load(ids);
        placed = both(wanted, either(placed, greater(value, old_value)));
        store(vals, select(placed, value, old_value));
        store(ids, select(placed, id, old_id));
        value = select(placed, old_value, value);
        id = select(placed, old_id, id);
      }
    }
  }
}

void topk_final(const TopkFinalArgs& a) {
  const int64_t slot = a.rows * kLanes;
  for (int64_t row = 0; row < a.rows; ++row) {
    // Lanes are sorted, so the next of all is one of the 128 heads; taking it moves up its lane.
    alignas(64) float vals[kLanes], ids[kLanes];
    int64_t next[kLanes];
    for (int64_t c = 0; c < kLanes; ++c) {
      vals[c] = a.vals[row * kLanes + c];
      ids[c] = a.ids[row * kLanes + c];
      next[c] = 1;
      a.out_vals[row * kLanes + c] = 0;
      a.out_ids[row * kLanes + c] = 0;
    }
    bool spent[kLanes] = {};
    for (int64_t i = 0; i < a.k; ++i) {
      F best = load(vals);
      for (int c = kWidth; c < kLanes; c += kWidth) best = max(best, load(vals + c));
      const float value = max_lanes(best);
      constexpr float kNoId = 3.0e38f;
      F least = splat(kNoId);
      for (int c = 0; c < kLanes; c += kWidth) {
        least = min(least, select(equal(load(vals + c), splat(value)), load(ids + c), splat(kNoId)));
      }
      const float id = min_lanes(least);
      int64_t lane = 0;
      while (lane < kLanes - 1 && (spent[lane] || vals[lane] != value || ids[lane] != id)) ++lane;
      a.out_vals[row * kLanes + i] = value;
      a.out_ids[row * kLanes + i] = static_cast<int32_t>(id);
      if (next[lane] < a.k) {
        vals[lane] = a.vals[next[lane] * slot + row * kLanes + lane];
        ids[lane] = a.ids[next[lane] * slot + row * kLanes + lane];
        ++next[lane];
      } else {
        spent[lane] = true;
        vals[lane] = -__builtin_inff();
        ids[lane] = kNoId;
      }
    }
  }
}

void kv_append(const KvAppendArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const int64_t slot = a.row_table[a.rows + row], position = a.row_table[2 * a.rows + row];
    if (a.row_table[3 * a.rows + row] == 0) continue;
    const int64_t page = a.pages[slot * a.max_pages + position / kPageTokens];
    for (int64_t kind = 0; kind < 2; ++kind) {
      const int64_t to = ((page * 2 + kind) * kPageTokens + position % kPageTokens);
      __builtin_memcpy(a.cache + to * a.width_stride,
                       a.qkv + ((a.groups + kind) * a.rows + row) * a.width_stride,
                       static_cast<unsigned long>(a.width_stride) * sizeof(uint16_t));
    }
  }
}
