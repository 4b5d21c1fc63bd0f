#include "gridless/weights/stream_packer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gridless/base/check.h"
#include "gridless/base/numerics.h"
#include "gridless/weights/dequantise.h"
#include "gridless/weights/mxfp4.h"

namespace gridless::weights {

namespace {

constexpr int64_t kLanes = 128;
constexpr int64_t kBlock = 32;

bool same_blocks(Format f, const RowSource& source) {
  if (f == Format::kMxfp4) return source.scales != nullptr;
  const Dtype d = source.tensor->dtype;
  return (f == Format::kQ8 && d == Dtype::kQ8_0) || (f == Format::kQ4 && d == Dtype::kQ4_0) ||
         (f == Format::kQ4m && d == Dtype::kQ4_1);
}

// One block of a GGUF row.
Block read_gguf_block(Format f, const uint8_t* p) {
  Block b;
  std::memcpy(&b.scale, p, 2);
  p += 2;
  if (f == Format::kQ4m) {
    std::memcpy(&b.min, p, 2);
    p += 2;
  }
  if (f == Format::kQ8) {
    std::memcpy(b.codes, p, 32);
    return b;
  }
  for (int i = 0; i < 16; ++i) {
    b.codes[i] = static_cast<int8_t>(p[i] & 15);
    b.codes[i + 16] = static_cast<int8_t>(p[i] >> 4);
  }
  return b;
}

int64_t block_bytes(Format f) { return f == Format::kQ8 ? 34 : f == Format::kQ4 ? 18 : 20; }

Result<Block> read_block(Format f, const RowSource& source, int64_t block) {
  if (f != Format::kMxfp4) {
    return read_gguf_block(f, source.tensor->row(source.row).data() + block * block_bytes(f));
  }
  TRY(const Mxfp4Block read, read_mxfp4_block(*source.tensor, *source.scales, source.row, block));
  Block b{.scale = read.scale};
  std::copy_n(read.codes, kBlock, b.codes);
  return b;
}

// All inputs of a row as floats.
Result<void> read_floats(const RowSource& source, float* out) {
  return source.scales ? dequantise_mxfp4_row(*source.tensor, *source.scales, source.row, out)
                       : dequantise_row(*source.tensor, source.row, out);
}

// The 128 rows of a panel, one after another in input order: bf16 values, or blocks.
class PanelReader {
 public:
  PanelReader(const MatrixLayout& layout, const MatrixPlan& plan) : layout_(layout), plan_(plan) {}

  Result<void> read(int64_t panel) {
    const int64_t k = layout_.shape.k;
    if (layout_.shape.format == Format::kBf16) {
      values_.assign(static_cast<size_t>(kLanes * k), bf16{});
    } else {
      blocks_.assign(static_cast<size_t>(kLanes * k / kBlock), zero_block());
    }
    if (plan_.transposed) return read_transposed(panel);
    for (int64_t c = 0; c < kLanes; ++c) {
      const MatrixLayout::Output o = layout_.output(panel, c);
      const std::vector<RowSource>& rows = o.half ? plan_.second_rows : plan_.rows;
      if (o.index >= static_cast<int64_t>(rows.size())) continue;  // padding
      const RowSource& source = rows[static_cast<size_t>(o.index)];
      if (source.tensor) TRY_VOID(read_row(c, source));
    }
    return {};
  }

  bf16 value(int64_t column, int64_t input) const {
    return values_[static_cast<size_t>(column * layout_.shape.k + input)];
  }
  const Block& block(int64_t column, int64_t group) const {
    return blocks_[static_cast<size_t>(column * (layout_.shape.k / kBlock) + group)];
  }

 private:
  Block zero_block() const {
    Block b;
    if (layout_.shape.format == Format::kQ4) std::fill_n(b.codes, kBlock, int8_t{8});
    return b;
  }

  Result<void> read_row(int64_t column, const RowSource& source) {
    const TensorView& t = *source.tensor;
    const Format f = layout_.shape.format;
    const bool exact = same_blocks(f, source);
    if (!exact && f == Format::kMxfp4) {
      return input_error("tensor {} is {}: only MXFP4 tensors run as mxfp4", t.name, name(t.dtype));
    }
    if (!exact) {
      floats_.resize(static_cast<size_t>(source.inputs()));
      TRY_VOID(read_floats(source, floats_.data()));
    }
    const int64_t k = layout_.shape.k;
    int64_t at = 0;
    line_.assign(static_cast<size_t>(k), 0.0f);
    for (const ColumnRange& r : plan_.columns) {
      GRIDLESS_CHECK(at + r.count <= k && r.begin + r.count <= source.inputs(), "{}", t.name);
      if (r.begin >= 0 && exact) {
        if (r.begin % kBlock != 0 || at % kBlock != 0 || r.count % kBlock != 0) {
          return input_error(
              "tensor {}: inputs {} to {} cut its blocks of 32; choose another core count, or "
              "--format "
              "bf16",
              t.name, r.begin, r.begin + r.count);
        }
        for (int64_t g = 0; g < r.count / kBlock; ++g) {
          TRY(blocks_[static_cast<size_t>(column * (k / kBlock) + at / kBlock + g)],
              read_block(f, source, r.begin / kBlock + g));
        }
      } else if (r.begin >= 0) {
        std::copy_n(floats_.begin() + r.begin, r.count, line_.begin() + at);
      }
      at += r.count;
    }
    if (!exact) convert_line(column);
    return {};
  }

  Result<void> read_transposed(int64_t panel) {
    if (layout_.shape.format == Format::kMxfp4) {
      return input_error("matrix {} is read by columns, which cuts blocks", layout_.shape.name);
    }
    const ColumnRange r = plan_.columns.at(0);
    const auto inputs = static_cast<int64_t>(plan_.rows.size());
    GRIDLESS_CHECK(inputs <= layout_.shape.k && r.count <= layout_.shape.n, "{}",
                   layout_.shape.name);
    if (all_.empty()) {
      for (const RowSource& source : plan_.rows) {
        floats_.resize(static_cast<size_t>(source.inputs()));
        TRY_VOID(read_floats(source, floats_.data()));
        all_.insert(all_.end(), floats_.begin() + r.begin, floats_.begin() + r.begin + r.count);
      }
    }
    for (int64_t c = 0; c < kLanes && panel * kLanes + c < r.count; ++c) {
      line_.assign(static_cast<size_t>(layout_.shape.k), 0.0f);
      for (int64_t i = 0; i < inputs; ++i) {
        line_[static_cast<size_t>(i)] = all_[static_cast<size_t>(i * r.count + panel * kLanes + c)];
      }
      convert_line(c);
    }
    return {};
  }

  // The inputs in line_ as those of a column.
  void convert_line(int64_t column) {
    const Format f = layout_.shape.format;
    const int64_t k = layout_.shape.k;
    if (f == Format::kBf16) {
      for (int64_t i = 0; i < k; ++i)
        values_[static_cast<size_t>(column * k + i)] = to_bf16(line_[static_cast<size_t>(i)]);
    } else {
      for (int64_t g = 0; g < k / kBlock; ++g) {
        blocks_[static_cast<size_t>(column * (k / kBlock) + g)] =
            quantise_block(f, line_.data() + g * kBlock);
      }
    }
  }

  const MatrixLayout& layout_;
  const MatrixPlan& plan_;
  std::vector<bf16> values_;
  std::vector<Block> blocks_;
  std::vector<float> floats_, line_;
  std::vector<float> all_;  // of a transposed plan: [input][output]
};

// Codes and scales of inputs [k0, k0 + kp) of the panel in `reader`.
void write_panel(const MatrixLayout& m, int64_t k0, const PanelReader& reader, uint32_t* codes,
                 uint32_t* scales) {
  const Format f = m.shape.format;
  if (f == Format::kBf16) {
    for (int64_t i = 0; i < m.kp / 2; ++i) {
      for (int64_t c = 0; c < kLanes; ++c) {
        const uint32_t low = reader.value(c, k0 + 2 * i).bits,
                       high = reader.value(c, k0 + 2 * i + 1).bits;
        codes[i * kLanes + c] = low | high << 16;
      }
    }
    return;
  }
  const int64_t per_word = f == Format::kQ8 ? 4 : 8, bits = 32 / per_word;
  const uint32_t mask = (1u << bits) - 1;
  for (int64_t g = 0; g < m.kp / kBlock; ++g) {
    for (int64_t c = 0; c < kLanes; ++c) {
      const Block& b = reader.block(c, k0 / kBlock + g);
      for (int64_t i = 0; i < kBlock / per_word; ++i) {
        uint32_t word = 0;
        for (int64_t j = 0; j < per_word; ++j) {
          word |= (static_cast<uint32_t>(b.codes[i * per_word + j]) & mask) << (bits * j);
        }
        codes[(g * (kBlock / per_word) + i) * kLanes + c] = word;
      }
      if (f == Format::kMxfp4) {
        scales[g / 4 * kLanes + c] |= static_cast<uint32_t>(b.scale) << (8 * (g % 4));
      } else if (f == Format::kQ4m) {
        scales[g * kLanes + c] = b.scale | static_cast<uint32_t>(b.min) << 16;
      } else {
        uint32_t& word = scales[g / 2 * kLanes + c];
        word |= static_cast<uint32_t>(b.scale) << (g % 2 ? 16 : 0);
      }
    }
  }
}

}  // namespace

Block quantise_block(Format f, const float* x) {
  Block b;
  const auto nearest = [](float v, int low, int high) {
    return static_cast<int8_t>(std::clamp(static_cast<int>(std::nearbyint(v)), low, high));
  };
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  if (f == Format::kQ4m) {
    const f16 d = to_f16((*high - *low) / 15), m = to_f16(*low);
    b.scale = d.bits;
    b.min = m.bits;
    const float scale = to_f32(d);
    for (int64_t i = 0; i < kBlock; ++i) {
      b.codes[i] = scale > 0 ? nearest((x[i] - to_f32(m)) / scale, 0, 15) : int8_t{0};
    }
    return b;
  }
  // q8: symmetric. q4: the value of largest magnitude becomes code 0 (= -8), as in Q4_0.
  const float extreme = -*low > *high ? *low : *high;
  const f16 d = to_f16(f == Format::kQ8 ? std::abs(extreme) / 127 : extreme / -8);
  b.scale = d.bits;
  const float scale = to_f32(d);
  for (int64_t i = 0; i < kBlock; ++i) {
    const float q = scale != 0 ? x[i] / scale : 0;
    b.codes[i] = f == Format::kQ8 ? nearest(q, -127, 127) : nearest(q + 8, 0, 15);
  }
  return b;
}

Result<void> pack_matrix(const MatrixLayout& m, int64_t chunk_rows, const MatrixPlan& plan,
                         std::span<uint32_t> out) {
  GRIDLESS_CHECK(static_cast<int64_t>(out.size()) == m.chunks() * chunk_rows * kLanes, "{}",
                 m.shape.name);
  std::ranges::fill(out, 0u);
  const int64_t code = code_rows(m.shape.format, m.kp), scale = scale_rows(m.shape.format, m.kp);
  PanelReader reader(m, plan);
  for (int64_t panel = 0; panel < m.panels; ++panel) {
    TRY_VOID(reader.read(panel));
    const int64_t group = panel / m.panels_per_chunk, p = panel % m.panels_per_chunk;
    for (int64_t part = 0; part < m.parts; ++part) {
      uint32_t* chunk = out.data() + (group * m.parts + part) * chunk_rows * kLanes;
      write_panel(m, part * m.kp, reader, chunk + p * code * kLanes,
                  chunk + (m.panels_per_chunk * code + p * scale) * kLanes);
    }
  }
  return {};
}

}  // namespace gridless::weights
