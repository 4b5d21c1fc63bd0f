// qkv_norm_rope, gate_context and gated_delta (docs/composites.md). The includer brings exp_block,
// delta_replay, delta_step and bf16_bits.

inline constexpr int64_t kTaps = 4, kPendingRows = 8, kStateColumns = 16;

inline float one_exp(float x) {
  float y = 0;
  exp_block(&x, &y, 1);
  return y;
}

// out = bf16(x / (1 + exp(-x)) * scale) is what silu and sigmoid gates come down to; `negative` is
// scratch of n floats and ends as 1 + exp(-x).
inline void one_plus_exp_of_minus(const float* x, float* negative, int64_t n) {
  for (int64_t i = 0; i < n; ++i) negative[i] = -x[i];
  exp_block(negative, negative, n);
  for (int64_t i = 0; i < n; ++i) negative[i] = negative[i] + 1.0f;
}

inline void qkv_norm_rope(const QkvNormRopeArgs& args) {
  const QkvRopeArgs& a = args.rope;
  const int64_t half = a.width / 2, head_half = half / args.heads;
  const auto share = 1.0f / static_cast<float>(2 * head_half);
  for (int64_t row = 0; row < a.rows; ++row) {
    const auto y = [&](int64_t i) {
      return a.y[(i / kLanes * a.rows + row) * kLanes + i % kLanes];
    };
    const float* cos = a.cos + row * a.half_stride;
    const float* sin = a.sin + row * a.half_stride;
    for (int64_t part = 0; part < a.groups + 2; ++part) {
      uint16_t* out = a.out + (part * a.rows + row) * a.width_stride;
      const int64_t at = part * a.width;
      for (int64_t j = 0; part <= a.groups && j < args.heads; ++j) {
        float squares = 0;
        for (int64_t i = j * head_half; i < (j + 1) * head_half; ++i) {
          squares = squares + (y(at + i) * y(at + i) + y(at + half + i) * y(at + half + i));
        }
        const float scale = 1.0f / __builtin_sqrtf(squares * share + args.eps);
        const float* w = args.norms + (part < a.groups ? 0 : 2) * a.half_stride;
        for (int64_t i = j * head_half; i < (j + 1) * head_half; ++i) {
          const float lo = y(at + i) * scale * w[i];
          const float hi = y(at + half + i) * scale * w[a.half_stride + i];
          out[i] = bf16_bits(lo * cos[i] - hi * sin[i]);
          out[half + i] = bf16_bits(hi * cos[i] + lo * sin[i]);
        }
      }
      if (part > a.groups) {
        for (int64_t i = 0; i < a.width; ++i) out[i] = bf16_bits(y(at + i));
      }
      for (int64_t i = a.width; i < a.width_stride; ++i) out[i] = 0;
    }
  }
}

inline void gate_context(const GateContextArgs& a) {
  float* denominator = thread_scratch(a.n);
  one_plus_exp_of_minus(a.gate, denominator, a.n);
  for (int64_t i = 0; i < a.n; ++i) {
    const float open = 1.0f / denominator[i];
    const float value = __builtin_bit_cast(float, static_cast<uint32_t>(a.context[i]) << 16);
    a.context[i] = bf16_bits(value * open);
  }
}

// One launch's rows of one slot, first .. first + count.
class DeltaRun {
 public:
  DeltaRun(const GatedDeltaArgs& a, int64_t first)
      : a_(a),
        first_(first),
        count_(a.after[first] + 1),
        slot_(a.row_table[a.rows + first]),
        fresh_(a.row_table[2 * a.rows + first] == 0),
        keep_(fresh_ ? 0 : a.keep[slot_]),
        committed_(count_ > kPendingRows ? count_ - kPendingRows : 0),
        key_panels_((a.key_heads * a.key_dim + kLanes - 1) / kLanes),
        value_panels_((a.value_heads * a.value_dim + kLanes - 1) / kLanes),
        channels_((2 * key_panels_ + value_panels_) * kLanes),
        keys_(a.key_heads * a.key_dim),
        values_(a.value_heads * a.value_dim) {
    float* next = thread_scratch(floats());
    const auto take = [&](int64_t n) {
      float* p = next;
      next += (n + 15) / 16 * 16;
      return p;
    };
    columns_ = take((count_ + kTaps - 1) * channels_);
    conv_ = take(channels_), denominator_ = take(channels_ > values_ ? channels_ : values_);
    k_ = take(count_ * keys_), q_ = take(count_ * keys_), v_ = take(count_ * values_);
    d_ = take(count_ * values_), o_ = take(count_ * values_);
    decay_ = take(count_ * a.value_heads), beta_ = take(count_ * a.value_heads);
    work_ = take(a.key_dim * a.value_dim);
    gate_ = take(value_panels_ * kLanes);
  }

  void run() {
    load_columns();
    for (int64_t i = 0; i < count_; ++i) convolve(i), gates(i);
    for (int64_t h = 0; h < a_.value_heads; ++h) head(h);
    for (int64_t i = 0; i < count_; ++i) output(i);
    store_columns();
    store_pending();
  }

 private:
  int64_t floats() const {
    return (count_ + kTaps + 2) * channels_ + count_ * (2 * keys_ + 3 * values_) +
           2 * count_ * a_.value_heads + a_.key_dim * a_.value_dim + 2 * value_panels_ * kLanes +
           16 * 16;
  }
  float y(int64_t flat, int64_t row) const {
    return a_.y[(flat / kLanes * a_.rows + first_ + row) * kLanes + flat % kLanes];
  }
  float* state_column(int64_t panel, int64_t j) const {
    return a_.columns + ((slot_ * (channels_ / kLanes) + panel) * kStateColumns + j) * kLanes;
  }
  int64_t pending_rows() const { return a_.key_heads + 2 * a_.value_heads; }
  float* pending(int64_t j, int64_t row) const {
    return a_.pending + ((slot_ * kPendingRows + j) * pending_rows() + row) * kLanes;
  }

  void load_columns() {
    for (int64_t j = 0; j < kTaps - 1; ++j)
      for (int64_t c = 0; c < channels_; ++c) {
        columns_[j * channels_ + c] =
            fresh_ ? 0.0f : state_column(c / kLanes, keep_ + j)[c % kLanes];
      }
    for (int64_t i = 0; i < count_; ++i)
      for (int64_t c = 0; c < channels_; ++c) columns_[(kTaps - 1 + i) * channels_ + c] = y(c, i);
  }

  void convolve(int64_t i) {
    const float* x = columns_ + i * channels_;
    for (int64_t c = 0; c < channels_; ++c) {
      float total = x[c] * a_.conv[c];
      for (int64_t t = 1; t < kTaps; ++t) {
        total = total + x[t * channels_ + c] * a_.conv[t * channels_ + c];
      }
      conv_[c] = total;
    }
    one_plus_exp_of_minus(conv_, denominator_, channels_);
    for (int64_t c = 0; c < channels_; ++c) conv_[c] = conv_[c] / denominator_[c];
    const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(a_.key_dim));
    for (int64_t g = 0; g < a_.key_heads; ++g) {
      unit(conv_ + g * a_.key_dim, scale, q_ + i * keys_ + g * a_.key_dim);
      unit(conv_ + key_panels_ * kLanes + g * a_.key_dim, 1.0f, k_ + i * keys_ + g * a_.key_dim);
    }
    for (int64_t c = 0; c < values_; ++c) {
      v_[i * values_ + c] = conv_[2 * key_panels_ * kLanes + c];
    }
  }

  void unit(const float* x, float scale, float* out) const {
    float squares = 0;
    for (int64_t c = 0; c < a_.key_dim; ++c) squares = squares + x[c] * x[c];
    const float inverse = 1.0f / __builtin_sqrtf(squares + a_.eps);
    for (int64_t c = 0; c < a_.key_dim; ++c) out[c] = x[c] * inverse * scale;
  }

  void gates(int64_t i) {
    const int64_t flat = channels_ + value_panels_ * kLanes, heads = a_.value_heads;
    for (int64_t h = 0; h < heads; ++h) {
      const float b = y(flat + h, i), x = y(flat + heads + h, i) + a_.vectors[kLanes + heads + h];
      const float positive = x > 0 ? x : 0.0f, magnitude = x > 0 ? x : -x;
      const float softplus = positive + __builtin_log1pf(one_exp(-magnitude));
      beta_[i * heads + h] = 1.0f / (1.0f + one_exp(-b));
      decay_[i * heads + h] = one_exp(a_.vectors[heads + h] * softplus);
    }
  }

  void head(int64_t h) {
    const DeltaDims dims{a_.key_dim, a_.value_dim};
    const int64_t size = dims.key * dims.value, g = h / (a_.value_heads / a_.key_heads);
    float* matrix = a_.matrix + (slot_ * a_.value_heads + h) * size;
    for (int64_t i = 0; fresh_ && i < size; ++i) matrix[i] = 0;
    for (int64_t j = 0; j < keep_; ++j) {
      delta_replay(matrix, pending(j, g), pending(j, a_.key_heads + h),
                   pending(j, a_.key_heads + a_.value_heads + h)[0], dims);
    }
    const float* from = matrix;
    for (int64_t i = 0; i < count_; ++i) {
      // Committed rows change the state, pending ones a copy; nothing is behind the last.
      float* to = i < committed_ ? matrix : i + 1 < count_ ? work_ : nullptr;
      delta_step({.from = from,
                  .to = to,
                  .k = k_ + i * keys_ + g * dims.key,
                  .q = q_ + i * keys_ + g * dims.key,
                  .v = v_ + i * values_ + h * dims.value,
                  .decay = decay_[i * a_.value_heads + h],
                  .beta = beta_[i * a_.value_heads + h],
                  .d = d_ + i * values_ + h * dims.value,
                  .o = o_ + i * values_ + h * dims.value},
                 dims);
      from = to;
    }
  }

  // The gated norm of row i.
  void output(int64_t i) {
    const int64_t lanes = value_panels_ * kLanes;
    for (int64_t c = 0; c < lanes; ++c) gate_[c] = y(channels_ + c, i);
    one_plus_exp_of_minus(gate_, denominator_, values_);
    for (int64_t h = 0; h < a_.value_heads; ++h) {
      const float* o = o_ + i * values_ + h * a_.value_dim;
      float squares = 0;
      for (int64_t v = 0; v < a_.value_dim; ++v) squares = squares + o[v] * o[v];
      const float share = 1.0f / static_cast<float>(a_.value_dim);
      const float inverse = 1.0f / __builtin_sqrtf(squares * share + a_.eps);
      for (int64_t v = 0; v < a_.value_dim; ++v) {
        const int64_t c = h * a_.value_dim + v;
        put(c, i,
            bf16_bits(o[v] * inverse * a_.vectors[2 * kLanes + v] * (gate_[c] / denominator_[c])));
      }
    }
    for (int64_t c = values_; c < lanes; ++c) put(c, i, 0);
  }
  void put(int64_t flat, int64_t i, uint16_t bits) const {
    a_.out[(flat / kLanes * a_.rows + first_ + i) * kLanes + flat % kLanes] = bits;
  }

  void store_columns() const {
    for (int64_t j = 0; j < kTaps - 1 + count_ - committed_; ++j)
      for (int64_t c = 0; c < channels_; ++c) {
        state_column(c / kLanes, j)[c % kLanes] = columns_[(committed_ + j) * channels_ + c];
      }
  }

  void store_pending() const {
    for (int64_t i = committed_; i < count_; ++i) {
      const auto put = [&](int64_t row, const float* from, int64_t n) {
        float* to = pending(i - committed_, row);
        for (int64_t c = 0; c < n; ++c) to[c] = from[c];
      };
      for (int64_t g = 0; g < a_.key_heads; ++g) {
        put(g, k_ + i * keys_ + g * a_.key_dim, a_.key_dim);
      }
      for (int64_t h = 0; h < a_.value_heads; ++h) {
        put(a_.key_heads + h, d_ + i * values_ + h * a_.value_dim, a_.value_dim);
        float* decay = pending(i - committed_, a_.key_heads + a_.value_heads + h);
        for (int64_t v = 0; v < a_.value_dim; ++v) decay[v] = decay_[i * a_.value_heads + h];
      }
    }
  }

  const GatedDeltaArgs& a_;
  const int64_t first_, count_, slot_;
  const bool fresh_;  // the sequence begins here
  const int64_t keep_, committed_;
  const int64_t key_panels_, value_panels_;
  const int64_t channels_;  // of the convolution, padded to panels
  const int64_t keys_, values_;
  // [count + 3][channels]; then per row [keys], [values] or [value_heads]; one matrix; one row.
  float *columns_, *conv_, *denominator_, *k_, *q_, *v_, *d_, *o_, *decay_, *beta_, *work_, *gate_;
};

inline void gated_delta(const GatedDeltaArgs& a) {
  const int64_t panels = (a.value_heads * a.value_dim + kLanes - 1) / kLanes;
  for (int64_t row = 0; row < a.rows; ++row) {
    if (a.row_table[3 * a.rows + row] == 0) {
      for (int64_t i = 0; i < panels * kLanes; ++i) {
        a.out[(i / kLanes * a.rows + row) * kLanes + i % kLanes] = 0;
      }
    } else if (a.first[row] == row) {
      DeltaRun(a, row).run();
    }
  }
}
