// The reference: every composite as docs/composites.md writes it, one loop per sum. Slow on
// purpose; the vector kernels are tested against these.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gridless/base/numerics.h"
#include "gridless/cpu/kernel_tables.h"

namespace gridless::cpu {
namespace {

#include "gridless/cpu/gated_types.inl"

float value(uint16_t bits) { return to_f32(bf16{bits}); }

float x_at(const DotArgs& a, int64_t row, int64_t k) {
  const int64_t input = a.k0 + k;
  return value(a.x[(input / kLanes * a.rows + row) * kLanes + input % kLanes]);
}

float f16_half(uint32_t word, int64_t half) {
  return to_f32(f16{static_cast<uint16_t>(half == 0 ? word : word >> 16)});
}

// Runs `column(codes, scales, row, c, acc)` for every output. `codes` and `scales` point at the
// first word of the output's column, rows of a column are 128 words apart.
template <class Column>
void for_each_output(const DotArgs& a, int64_t code_rows, int64_t scale_rows, Column column) {
  for (int64_t p = 0; p < a.panels; ++p) {
    const uint32_t* codes = a.tile + p * code_rows * kLanes;
    const uint32_t* scales = a.tile + (a.panels * code_rows + p * scale_rows) * kLanes;
    for (int64_t row = 0; row < a.rows; ++row) {
      for (int64_t c = 0; c < kLanes; ++c) {
        float& out = a.out[(p * a.rows + row) * kLanes + c];
        out = column(codes + c, scales + c, row, a.accumulate ? out : 0.0f);
      }
    }
  }
}

void dot_bf16(const DotArgs& a) {
  for_each_output(a, a.kp / 2, 0,
                  [&](const uint32_t* codes, const uint32_t*, int64_t row, float acc) {
                    for (int64_t k = 0; k < a.kp; ++k) {
                      const uint32_t word = codes[k / 2 * kLanes];
                      const float w = value(static_cast<uint16_t>(k % 2 == 0 ? word : word >> 16));
                      acc = std::fma(x_at(a, row, k), w, acc);
                    }
                    return acc;
                  });
}

void dot_q8(const DotArgs& a) {
  for_each_output(a, a.kp / 4, (a.kp + 63) / 64,
                  [&](const uint32_t* codes, const uint32_t* scales, int64_t row, float acc) {
                    for (int64_t g = 0; g < a.kp / 32; ++g) {
                      float part = 0;
                      for (int64_t k = 32 * g; k < 32 * g + 32; ++k) {
                        const auto code = static_cast<int8_t>(codes[k / 4 * kLanes] >> (k % 4 * 8));
                        part = std::fma(x_at(a, row, k), static_cast<float>(code), part);
                      }
                      acc = acc + f16_half(scales[g / 2 * kLanes], g % 2) * part;
                    }
                    return acc;
                  });
}

// The sum over 32-group g of x times (code - 8).
float q4_part(const DotArgs& a, const uint32_t* codes, int64_t row, int64_t g) {
  float part = 0;
  for (int64_t k = 32 * g; k < 32 * g + 32; ++k) {
    const auto code = static_cast<int>(codes[k / 8 * kLanes] >> (k % 8 * 4) & 15u);
    part = std::fma(x_at(a, row, k), static_cast<float>(code - 8), part);
  }
  return part;
}

void dot_q4(const DotArgs& a) {
  for_each_output(a, a.kp / 8, (a.kp + 63) / 64,
                  [&](const uint32_t* codes, const uint32_t* scales, int64_t row, float acc) {
                    for (int64_t g = 0; g < a.kp / 32; ++g) {
                      acc =
                          acc + f16_half(scales[g / 2 * kLanes], g % 2) * q4_part(a, codes, row, g);
                    }
                    return acc;
                  });
}

void dot_q4m(const DotArgs& a) {
  for_each_output(a, a.kp / 8, a.kp / 32,
                  [&](const uint32_t* codes, const uint32_t* scales, int64_t row, float acc) {
                    for (int64_t g = 0; g < a.kp / 32; ++g) {
                      const uint32_t word = scales[g * kLanes];
                      const float scale = f16_half(word, 0);
                      const float mid = f16_half(word, 1) + 8.0f * scale;
                      float sx = 0;
                      for (int64_t k = 32 * g; k < 32 * g + 32; ++k) sx = sx + x_at(a, row, k);
                      acc = acc + scale * q4_part(a, codes, row, g);
                      acc = acc + mid * sx;
                    }
                    return acc;
                  });
}

void rms_norm(const RmsNormArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    float sum = 0;
    for (int64_t i = 0; i < a.panels * kLanes; ++i) {
      const float x = a.x[(i / kLanes * a.rows + row) * kLanes + i % kLanes];
      sum += x * x;
    }
    const float inverse = 1.0f / std::sqrt(sum / static_cast<float>(a.width) + a.eps);
    for (int64_t i = 0; i < a.panels * kLanes; ++i) {
      const int64_t at = (i / kLanes * a.rows + row) * kLanes + i % kLanes;
      a.out[at] = to_bf16(a.x[at] * inverse * a.w[i]).bits;
    }
  }
}

void qkv_rope(const QkvRopeArgs& a) {
  const int64_t half = a.width / 2;
  for (int64_t part = 0; part < a.groups + 2; ++part) {
    for (int64_t row = 0; row < a.rows; ++row) {
      const auto y = [&](int64_t lane) {
        const int64_t i = part * a.width + lane;
        return a.y[(i / kLanes * a.rows + row) * kLanes + i % kLanes];
      };
      uint16_t* out = a.out + (part * a.rows + row) * a.width_stride;
      const bool rotate = part <= a.groups;  // the queries and the key, not the value
      for (int64_t i = 0; i < half; ++i) {
        const float lo = y(i), hi = y(half + i);
        const float cos = a.cos[row * a.half_stride + i], sin = a.sin[row * a.half_stride + i];
        out[i] = to_bf16(rotate ? lo * cos - hi * sin : lo).bits;
        out[half + i] = to_bf16(rotate ? hi * cos + lo * sin : hi).bits;
      }
      for (int64_t i = a.width; i < a.width_stride; ++i) out[i] = 0;
    }
  }
}

// The key (kind 0) or value (kind 1) row of token t of a slot, as an offset into the cache.
int64_t cache_offset(const int32_t* slot_pages, int64_t kind, int64_t t, int64_t width_stride) {
  const int64_t page = slot_pages[t / kPageTokens];
  return ((page * 2 + kind) * kPageTokens + t % kPageTokens) * width_stride;
}

void kv_append(const KvAppendArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const int64_t slot = a.row_table[a.rows + row], position = a.row_table[2 * a.rows + row];
    if (a.row_table[3 * a.rows + row] == 0) continue;
    for (int64_t kind = 0; kind < 2; ++kind) {
      const uint16_t* from = a.qkv + ((a.groups + kind) * a.rows + row) * a.width_stride;
      uint16_t* to =
          a.cache + cache_offset(a.pages + slot * a.max_pages, kind, position, a.width_stride);
      for (int64_t i = 0; i < a.width_stride; ++i) to[i] = from[i];
    }
  }
}

// One query: group g of key/value head j, for the row at `position` of a slot. Writes head_dim
// outputs.
void attend(const DecodeAttentionArgs& a, const uint16_t* query, const int32_t* slot_pages,
            int64_t position, int64_t j, float* out) {
  const int64_t dim = a.head_dim, half = dim / 2, width = a.heads * dim;
  constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
  float max = kMinusInfinity, sum = 0;
  for (int64_t i = 0; i < dim; ++i) out[i] = 0;
  for (int64_t first = 0; first <= position; first += kPageTokens) {
    float s[kPageTokens], page_max = kMinusInfinity;
    for (int64_t t = 0; t < kPageTokens; ++t) {
      s[t] = kMinusInfinity;
      if (first + t > position) continue;
      const uint16_t* key = a.cache + cache_offset(slot_pages, 0, first + t, a.width_stride);
      float dot = 0;
      for (int64_t i = 0; i < dim; ++i) {
        const int64_t lane = i < half ? j * half + i : width / 2 + j * half + i - half;
        dot = std::fma(value(query[lane]), value(key[lane]), dot);
      }
      s[t] = a.scale * dot;
      page_max = std::fmax(page_max, s[t]);
    }
    const float new_max = std::fmax(max, page_max);
    const float correction = std::exp(max - new_max);
    max = new_max;
    float page_sum = 0;
    for (float& t : s) {
      t = std::exp(t - new_max);
      page_sum += t;
    }
    sum = sum * correction + page_sum;
    for (int64_t i = 0; i < dim; ++i) {
      float dot = 0;
      for (int64_t t = 0; t < kPageTokens && first + t <= position; ++t) {
        const int64_t row = cache_offset(slot_pages, 1, first + t, a.width_stride);
        dot = std::fma(round_bf16(s[t]), value(a.cache[row + j * dim + i]), dot);
      }
      out[i] = out[i] * correction + dot;
    }
  }
  for (int64_t i = 0; i < dim; ++i) out[i] = out[i] / sum;
}

void decode_attention(const DecodeAttentionArgs& a) {
  const int64_t width = a.heads * a.head_dim, flat = a.groups * width;
  const int64_t panels = (flat + kLanes - 1) / kLanes;
  std::vector<float> out(static_cast<std::size_t>(panels * kLanes));
  for (int64_t row = 0; row < a.rows; ++row) {
    out.assign(out.size(), 0.0f);
    if (a.row_table[3 * a.rows + row] != 0) {
      const int32_t* slot_pages = a.pages + a.row_table[a.rows + row] * a.max_pages;
      for (int64_t g = 0; g < a.groups; ++g) {
        const uint16_t* query = a.qkv + (g * a.rows + row) * a.width_stride;
        for (int64_t j = 0; j < a.heads; ++j) {
          attend(a, query, slot_pages, a.row_table[2 * a.rows + row], j,
                 out.data() + g * width + j * a.head_dim);
        }
      }
    }
    for (int64_t i = 0; i < panels * kLanes; ++i) {
      a.out[(i / kLanes * a.rows + row) * kLanes + i % kLanes] =
          to_bf16(out[static_cast<std::size_t>(i)]).bits;
    }
  }
}

void swiglu(const SwigluArgs& a) {
  const int64_t n = a.panels / 2 * a.rows * kLanes;
  for (int64_t i = 0; i < n; ++i) {
    const float gate = a.y[i], up = a.y[n + i];
    a.out[i] = to_bf16(gate / (1.0f + std::exp(-gate)) * up).bits;
  }
}

void add_into(const AddIntoArgs& a) {
  for (int64_t i = 0; i < a.panels * a.rows * kLanes; ++i) a.x[i] = a.x[i] + a.y[i];
}

void topk_insert(const TopkInsertArgs& a) {
  const int64_t slot = a.rows * kLanes;  // distance of a lane's consecutive candidates
  for (int64_t p = 0; p < a.panels; ++p) {
    for (int64_t lane = 0; lane < slot; ++lane) {
      const int64_t id = a.base + p * kLanes + lane % kLanes;
      const float logit = a.logits[p * slot + lane];
      if (id >= a.limit) continue;
      int64_t place = a.k;
      while (place > 0 && logit > a.vals[(place - 1) * slot + lane]) --place;
      if (place == a.k) continue;
      for (int64_t i = a.k - 1; i > place; --i) {
        a.vals[i * slot + lane] = a.vals[(i - 1) * slot + lane];
        a.ids[i * slot + lane] = a.ids[(i - 1) * slot + lane];
      }
      a.vals[place * slot + lane] = logit;
      a.ids[place * slot + lane] = static_cast<float>(id);
    }
  }
}

void topk_final(const TopkFinalArgs& a) {
  const int64_t slot = a.rows * kLanes;
  for (int64_t row = 0; row < a.rows; ++row) {
    std::vector<bool> taken(static_cast<std::size_t>(a.k * kLanes));
    for (int64_t i = 0; i < kLanes; ++i) {
      a.out_vals[row * kLanes + i] = 0;
      a.out_ids[row * kLanes + i] = 0;
    }
    for (int64_t i = 0; i < a.k; ++i) {
      int64_t best = -1;
      const auto at = [&](int64_t c) { return c / kLanes * slot + row * kLanes + c % kLanes; };
      for (int64_t c = 0; c < a.k * kLanes; ++c) {
        if (taken[static_cast<std::size_t>(c)]) continue;
        const bool better = best < 0 || a.vals[at(c)] > a.vals[at(best)] ||
                            (a.vals[at(c)] == a.vals[at(best)] && a.ids[at(c)] < a.ids[at(best)]);
        if (better) best = c;
      }
      taken[static_cast<std::size_t>(best)] = true;
      a.out_vals[row * kLanes + i] = a.vals[at(best)];
      a.out_ids[row * kLanes + i] = static_cast<int32_t>(a.ids[at(best)]);
    }
  }
}

void exp_block(const float* x, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i]);
}

void delta_replay(float* s, const float* k, const float* d, float decay, const DeltaDims& dims) {
  for (int64_t i = 0; i < dims.key; ++i)
    for (int64_t v = 0; v < dims.value; ++v) {
      s[i * dims.value + v] = s[i * dims.value + v] * decay + k[i] * d[v];
    }
}

void delta_step(const DeltaStep& a, const DeltaDims& dims) {
  for (int64_t v = 0; v < dims.value; ++v) delta_lane(a, dims, v);
}

uint16_t bf16_bits(float x) { return to_bf16(x).bits; }

#include "gridless/cpu/gated.inl"

}  // namespace

const KernelTable& scalar_kernels() {
  static constexpr KernelTable table = {dot_bf16,      dot_q8,       dot_q4,      dot_q4m,
                                        rms_norm,      qkv_rope,     kv_append,   decode_attention,
                                        swiglu,        add_into,     topk_insert, topk_final,
                                        qkv_norm_rope, gate_context, gated_delta};
  return table;
}

}  // namespace gridless::cpu
