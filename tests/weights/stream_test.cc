// The weight stream: properties of the layout, and the packer against a reader that is written from
// docs/weight_stream.md alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "gridless/base/numerics.h"
#include "gridless/weights/dequantise.h"
#include "gridless/weights/stream_packer.h"

namespace gridless::weights {
namespace {

constexpr Format kFormats[] = {Format::kBf16, Format::kQ8, Format::kQ4, Format::kQ4m};

// --- layout ---

int64_t bits_per_64_weights(Format f) {  // scales of a whole number of scale words included
  return f == Format::kBf16 ? 1024 : f == Format::kQ8 ? 544 : f == Format::kQ4 ? 288 : 320;
}

void check_layout(const StreamLayout& s, const std::vector<MatrixShape>& layer,
                  const std::vector<MatrixShape>& tail) {
  RC_ASSERT(s.chunk_rows % 8 == 0);
  RC_ASSERT(s.layer.size() == layer.size());
  RC_ASSERT(s.tail.size() == tail.size());
  const auto list = [&](const std::vector<MatrixLayout>& all, int64_t chunks) {
    std::set<int64_t> taken;
    for (const MatrixLayout& m : all) {
      RC_ASSERT(m.panels % m.panels_per_chunk == 0);
      RC_ASSERT(m.parts * m.kp == m.shape.k);
      RC_ASSERT(m.kp % 32 == 0);
      if (m.parts > 1) RC_ASSERT(m.kp % 128 == 0);
      RC_ASSERT(m.used_rows() <= s.chunk_rows);
      // Every chunk of the layer belongs to one (group, part) of one matrix.
      for (int64_t c = 0; c < m.chunks(); ++c) RC_ASSERT(taken.insert(m.first_chunk + c).second);
      // Every output is at one (panel, column); everything else is padding.
      std::set<std::pair<int, int64_t>> outputs;
      for (int64_t p = 0; p < m.panels; ++p) {
        for (int64_t c = 0; c < 128; ++c) {
          const auto o = m.output(p, c);
          if (o.index < m.shape.n) RC_ASSERT(outputs.insert({o.half, o.index}).second);
        }
      }
      RC_ASSERT(static_cast<int64_t>(outputs.size()) == m.shape.n * (m.shape.paired ? 2 : 1));
      if (m.shape.paired) {
        // The epilogue of a chunk has both halves of its outputs: panel p and p + P/2.
        const int64_t half = m.panels_per_chunk / 2;
        for (int64_t p = 0; p < m.panels; p += m.panels_per_chunk) {
          for (int64_t i = 0; i < half; ++i)
            RC_ASSERT(m.output(p + i, 5).index == m.output(p + i + half, 5).index);
        }
      }
    }
    RC_ASSERT(static_cast<int64_t>(taken.size()) == chunks);
    for (int64_t c = 0; c < chunks; ++c) RC_ASSERT(taken.contains(c));
  };
  list(s.layer, s.chunks_per_layer);
  list(s.tail, s.tail_chunks);
  RC_ASSERT(s.total_chunks() == s.layers * s.chunks_per_layer + s.tail_chunks);
  RC_ASSERT(s.used_bytes() <= s.total_bytes());
}

TEST(StreamLayout, EveryPanelAndPartIsInExactlyOneChunk) {
  EXPECT_TRUE(rc::check([] {
    const auto shapes = [](int count) {
      std::vector<MatrixShape> out;
      for (int i = 0; i < count; ++i) {
        out.push_back({"m" + std::to_string(i), *rc::gen::inRange<int64_t>(1, 3000),
                       32 * *rc::gen::inRange<int64_t>(1, 80), kFormats[*rc::gen::inRange(0, 4)],
                       *rc::gen::arbitrary<bool>()});
      }
      return out;
    };
    const auto layer = shapes(*rc::gen::inRange(0, 5)), tail = shapes(1);
    const int64_t limit = *rc::gen::inRange<int64_t>(1 << 14, 1 << 22);
    const StreamLayout s = make_stream_layout(*rc::gen::inRange(1, 40), layer, tail, limit);
    check_layout(s, layer, tail);
    // A chunk is within the limit wherever one panel of the least possible part is.
    int64_t least = 0;
    for (const auto* list : {&layer, &tail}) {
      for (const MatrixShape& m : *list) {
        const int64_t kp = m.k % 128 == 0 ? 128 : m.k;
        const int64_t rows = code_rows(m.format, kp) + scale_rows(m.format, kp);
        least = std::max(least, (m.paired ? 2 : 1) * rows);
      }
    }
    RC_ASSERT(s.chunk_rows * 512 <= std::max(limit, (least + 7) * 512) + 7 * 512);
  }));
}

TEST(StreamLayout, RowsAreTheBitsOfTheFormat) {
  for (const Format f : kFormats) {
    EXPECT_EQ((code_rows(f, 1024) + scale_rows(f, 1024)) * 32, bits_per_64_weights(f) * 1024 / 64)
        << spelling(f);
    EXPECT_EQ(*format_from_spelling(spelling(f)), f);
  }
  EXPECT_EQ(scale_rows(Format::kQ8, 32), 1);  // half of it unused
  EXPECT_THAT(format_from_spelling("q5").error().message, testing::HasSubstr("'q5'"));
}

// Of the bytes of the image, the share that is weights of the model (SmolLM2 135M, Llama 3.2 1B,
// Llama 3 8B) on one core, tiny head paddings included.
TEST(StreamLayout, KnownModelsFillTheirChunks) {
  struct Model {
    int64_t layers, hidden, qkv, q, ffn, vocab;
  };
  for (const Model& m : {Model{30, 576, 960, 576, 1536, 49152},
                         {16, 2048, 3072, 2048, 8192, 128256},
                         {32, 4096, 6144, 4096, 14336, 128256}}) {
    for (const Format f : kFormats) {
      for (const int64_t cores : {1, 8}) {
        if (m.hidden == 576 && cores == 8) continue;  // nine heads do not divide
        const int64_t ffn = (m.ffn / cores + 31) / 32 * 32;
        const StreamLayout s =
            make_stream_layout(m.layers,
                               {{"qkv", m.qkv / cores, m.hidden, f},
                                {"o", m.hidden, m.q / cores, f},
                                {"gate_up", ffn, m.hidden, f, true},
                                {"down", m.hidden, ffn, f}},
                               {{"head", m.vocab / cores, m.hidden, f}}, 4 << 20);
        const int64_t weights =
            m.layers * (m.hidden * (m.qkv + m.q) + 3 * m.hidden * m.ffn) + m.vocab * m.hidden;
        const double used = static_cast<double>(weights) / 64 *
                            static_cast<double>(bits_per_64_weights(f)) / 8 /
                            static_cast<double>(s.total_bytes() * cores);
        EXPECT_GE(used, 0.85) << m.hidden << " " << spelling(f) << " " << cores << " cores";
      }
    }
  }
}

// --- packer ---

float half(uint32_t bits) { return to_f32(f16{static_cast<uint16_t>(bits)}); }

// The value of input k, output c of panel p (of the chunk) in a chunk, by the tables of the format
// page.
float weight_at(const MatrixLayout& m, const uint32_t* chunk, int64_t p, int64_t k, int64_t c) {
  const int64_t kp = m.kp, panels = m.panels_per_chunk;
  const auto word = [&](int64_t row) { return chunk[row * 128 + c]; };
  switch (m.shape.format) {
    case Format::kBf16: {
      const uint32_t w = word(p * (kp / 2) + k / 2);
      return to_f32(bf16{static_cast<uint16_t>(k % 2 ? w >> 16 : w & 0xffff)});
    }
    case Format::kQ8: {
      const uint32_t w = word(p * (kp / 4) + k / 4);
      const auto code = static_cast<int8_t>(w >> (8 * (k % 4)) & 0xff);
      const uint32_t s = word(panels * (kp / 4) + p * ((kp + 63) / 64) + k / 64);
      return half(k % 64 < 32 ? s & 0xffff : s >> 16) * static_cast<float>(code);
    }
    case Format::kQ4: {
      const uint32_t w = word(p * (kp / 8) + k / 8);
      const int code = static_cast<int>(w >> (4 * (k % 8)) & 15);
      const uint32_t s = word(panels * (kp / 8) + p * ((kp + 63) / 64) + k / 64);
      return half(k % 64 < 32 ? s & 0xffff : s >> 16) * static_cast<float>(code - 8);
    }
    case Format::kQ4m: {
      const uint32_t w = word(p * (kp / 8) + k / 8);
      const int code = static_cast<int>(w >> (4 * (k % 8)) & 15);
      const uint32_t s = word(panels * (kp / 8) + p * (kp / 32) + k / 32);
      return half(s & 0xffff) * static_cast<float>(code) + half(s >> 16);
    }
  }
  return NAN;
}

// Weight (input k, output `index` of half `h`) of a packed matrix.
class Unpacked {
 public:
  Unpacked(const MatrixLayout& m, int64_t chunk_rows, const std::vector<uint32_t>& words)
      : n_(m.panels * 128) {
    for (auto& v : values_) v.assign(static_cast<size_t>(n_ * m.shape.k), NAN);
    for (int64_t panel = 0; panel < m.panels; ++panel) {
      const int64_t group = panel / m.panels_per_chunk, p = panel % m.panels_per_chunk;
      for (int64_t k = 0; k < m.shape.k; ++k) {
        const uint32_t* chunk = words.data() + (group * m.parts + k / m.kp) * chunk_rows * 128;
        for (int64_t c = 0; c < 128; ++c) {
          // A paired chunk: P/2 panels of the first, then P/2 of the second matrix.
          int64_t h = 0, output = panel * 128 + c;
          if (m.shape.paired) {
            const int64_t each = m.panels_per_chunk / 2;
            h = p >= each;
            output = (group * each + p % each) * 128 + c;
          }
          values_[h][static_cast<size_t>(output * m.shape.k + k)] =
              weight_at(m, chunk, p, k % m.kp, c);
        }
      }
    }
    k_ = m.shape.k;
  }
  float at(int h, int64_t output, int64_t k) const {
    return values_[h][static_cast<size_t>(output * k_ + k)];
  }

 private:
  int64_t n_, k_ = 0;
  std::vector<float> values_[2];
};

struct Source {
  std::vector<uint8_t> bytes;
  TensorView view;
  Source(Dtype dtype, int64_t rows, int64_t columns, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const int64_t blocks = rows * columns / info(dtype).block_elements;
    for (int64_t b = 0; b < blocks; ++b) {
      const auto put = [&](const auto& x) {
        const auto* p = reinterpret_cast<const uint8_t*>(&x);
        bytes.insert(bytes.end(), p, p + sizeof x);
      };
      if (dtype == Dtype::kF32) put(normal(random));
      if (dtype == Dtype::kBF16) put(to_bf16(normal(random)).bits);
      if (info(dtype).block_elements != 32) continue;
      put(to_f16(normal(random)).bits);
      if (dtype == Dtype::kQ4_1) put(to_f16(normal(random)).bits);
      for (int i = 0; i < (dtype == Dtype::kQ8_0 ? 32 : 16); ++i)
        put(static_cast<uint8_t>(random()));
    }
    view = {.name = "blk.0.w", .dtype = dtype, .shape = {rows, columns}, .stored = bytes};
  }
  Source(const Source&) = delete;
  float at(int64_t row, int64_t column) const {
    std::vector<float> line(static_cast<size_t>(view.row_elements()));
    EXPECT_TRUE(dequantise_row(view, row, line.data()));
    return line[static_cast<size_t>(column)];
  }
  std::vector<float> line(int64_t row) const {
    std::vector<float> out(static_cast<size_t>(view.row_elements()));
    EXPECT_TRUE(dequantise_row(view, row, out.data()));
    return out;
  }
};

struct PackCase {
  Format format;
  Dtype dtype;
  // |packed - source| <= relative * (largest of the block, spread included); 0: exact.
  double relative;
};

// Rows in any order with rows of zeros between, columns from three ranges with zeros between and
// after, one part and several, plain and paired.
TEST(Packer, UnpacksToTheSource) {
  for (const PackCase& pc :
       {PackCase{Format::kBf16, Dtype::kBF16, 0},
        {Format::kBf16, Dtype::kF32, 0x1p-8},
        {Format::kQ8, Dtype::kQ8_0, 0},
        {Format::kQ4, Dtype::kQ4_0, 0},
        {Format::kQ4m, Dtype::kQ4_1, 0},
        // Half a step of the format, and the rounding of the scale to f16 times the largest code.
        {Format::kQ8, Dtype::kF32, 0.5 / 127 + 0x1p-10},
        {Format::kQ4, Dtype::kF32, 1.0 / 8 + 0x1p-9},
        {Format::kQ4m, Dtype::kF32, 2 * 0.5 / 15 + 0x1p-8},
        {Format::kQ8, Dtype::kBF16, 0.5 / 127 + 0x1p-10}}) {
    for (const bool paired : {false, true}) {
      for (const int64_t limit : {20'000, 1 << 20}) {
        SCOPED_TRACE(testing::Message() << spelling(pc.format) << " from " << name(pc.dtype)
                                        << (paired ? " paired " : " ") << limit);
        const Source source(pc.dtype, 400, 384, 7);
        const StreamLayout s =
            make_stream_layout(0, {}, {{"w", 300, 512, pc.format, paired}}, limit);
        const MatrixLayout& m = s.tail[0];
        MatrixPlan plan;
        plan.columns = {{64, 96}, {-1, 32}, {0, 64}, {160, 224}};  // 416 of 512, zeros follow
        for (int64_t i = 0; i < 290; ++i) {  // the last ten outputs have no row at all
          plan.rows.push_back(i % 7 == 3 ? RowSource{} : RowSource{&source.view, (i * 13) % 400});
          if (paired) plan.second_rows.push_back({&source.view, (i * 29 + 1) % 400});
        }
        std::vector<uint32_t> words(static_cast<size_t>(s.total_rows() * 128), 0xdeadbeef);
        ASSERT_TRUE(pack_matrix(m, s.chunk_rows, plan, words));
        const Unpacked got(m, s.chunk_rows, words);
        for (int h = 0; h < (paired ? 2 : 1); ++h) {
          const auto& rows = h ? plan.second_rows : plan.rows;
          for (int64_t o = 0; o < 384; ++o) {
            const bool real = o < 290 && rows[static_cast<size_t>(o)].tensor;
            const std::vector<float> line =
                real ? source.line(rows[static_cast<size_t>(o)].row) : std::vector<float>(384);
            std::vector<float> want(512);
            int64_t at = 0;
            for (const ColumnRange& r : plan.columns) {
              for (int64_t i = 0; i < r.count; ++i, ++at)
                want[static_cast<size_t>(at)] =
                    r.begin < 0 ? 0 : line[static_cast<size_t>(r.begin + i)];
            }
            for (int64_t k = 0; k < 512; ++k) {
              float largest = 0;
              for (int64_t i = k / 32 * 32; i < k / 32 * 32 + 32; ++i)
                largest = std::max(largest, std::abs(want[static_cast<size_t>(i)]));
              if (pc.format == Format::kBf16) largest = std::abs(want[static_cast<size_t>(k)]);
              ASSERT_LE(std::abs(got.at(h, o, k) - want[static_cast<size_t>(k)]),
                        pc.relative * largest)
                  << "half " << h << " output " << o << " input " << k;
            }
          }
        }
        // What holds no weight is zero, scales of missing groups and ends of chunks included.
        for (int64_t chunk = 0; chunk < m.chunks(); ++chunk) {
          for (int64_t i = m.used_rows() * 128; i < s.chunk_rows * 128; ++i)
            ASSERT_EQ(words[static_cast<size_t>(chunk * s.chunk_rows * 128 + i)], 0u);
        }
      }
    }
  }
}

TEST(Packer, ColumnsThatCutABlockNameTheTensor) {
  const Source source(Dtype::kQ8_0, 4, 128, 1);
  const StreamLayout s = make_stream_layout(0, {}, {{"w", 4, 64, Format::kQ8}}, 1 << 20);
  std::vector<uint32_t> words(static_cast<size_t>(s.total_rows() * 128));
  const auto pack = [&](std::vector<ColumnRange> columns) {
    MatrixPlan plan{.rows = {{&source.view, 0}}, .second_rows = {}, .columns = std::move(columns)};
    return pack_matrix(s.tail[0], s.chunk_rows, plan, words);
  };
  EXPECT_TRUE(pack({{32, 64}}));
  for (const auto& bad :
       std::vector<std::vector<ColumnRange>>{{{16, 32}}, {{0, 48}}, {{-1, 16}, {0, 32}}}) {
    const auto error = pack(bad);
    ASSERT_FALSE(error);
    EXPECT_THAT(error.error().message,
                testing::AllOf(testing::HasSubstr("blk.0.w"), testing::HasSubstr("blocks of 32")));
  }
  // A type that cannot be read.
  const TensorView strange{.name = "odd", .dtype = Dtype::kIQ4_XS, .shape = {1, 256}, .stored = {}};
  MatrixPlan plan{.rows = {{&strange, 0}}, .second_rows = {}, .columns = {{0, 64}}};
  EXPECT_THAT(pack_matrix(s.tail[0], s.chunk_rows, plan, words).error().message,
              testing::HasSubstr("odd"));
}

TEST(Quantise, KeepsWhatTheFormatHolds) {
  float x[32];
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(i % 16) - 8;  // codes of q4 at scale 1
  const Block q4 = quantise_block(Format::kQ4, x), q4m = quantise_block(Format::kQ4m, x);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(half(q4.scale) * static_cast<float>(q4.codes[i] - 8), x[i]);
    EXPECT_EQ(half(q4m.scale) * static_cast<float>(q4m.codes[i]) + half(q4m.min), x[i]);
  }
  for (int i = 0; i < 32; ++i) x[i] = static_cast<float>(4 * i - 63) / 64;
  x[31] = 127.0f / 64;
  const Block q8 = quantise_block(Format::kQ8, x);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(half(q8.scale) * static_cast<float>(q8.codes[i]), x[i]);
  const float zeros[32] = {};
  for (const Format f : {Format::kQ8, Format::kQ4, Format::kQ4m})
    EXPECT_EQ(half(quantise_block(f, zeros).scale), 0.0f) << spelling(f);
}

TEST(StreamLayoutFront, ComesBeforeAllLayersOnce) {
  const MatrixShape front{"front", 256, 384, Format::kBf16};
  const auto s = make_stream_layout(3, {{"a", 128, 256, Format::kBf16}},
                                    {{"tail", 200, 256, Format::kQ8}}, 64 * 1024, {front});
  ASSERT_EQ(s.front.size(), 1u);
  EXPECT_EQ(s.front[0].first_chunk, 0);
  EXPECT_EQ(s.front_chunks, s.front[0].chunks());
  EXPECT_EQ(s.layer[0].first_chunk, 0);
  EXPECT_EQ(s.total_chunks(), s.front_chunks + 3 * s.chunks_per_layer + s.tail_chunks);
  const int64_t rows = s.front[0].chunks() * s.front[0].used_rows() +
                       3 * s.layer[0].chunks() * s.layer[0].used_rows() +
                       s.tail[0].chunks() * s.tail[0].used_rows();
  EXPECT_EQ(s.used_bytes(), rows * 512);
}

}  // namespace
}  // namespace gridless::weights
