#include "gridless/blocks/dot.h"

#include <algorithm>
#include <string>

namespace gridless::blocks {

using weights::Format;
using weights::MatrixLayout;

namespace {

constexpr int64_t kGroup = 32;   // inputs that share a scale
constexpr int64_t kTileK = 256;  // inputs per MXU pass of the quantised formats
constexpr int64_t kTileGroups = kTileK / kGroup;

// The words of rows [first, first + rows) of every panel, side by side: [rows, P * 128].
Vec words(const MatrixLayout& m, Ref tile, int64_t base, int64_t panel_stride, int64_t first,
          int64_t rows) {
  std::vector<Vec> parts;
  for (int64_t p = 0; p < m.panels_per_chunk; ++p) {
    parts.push_back(tile.load({base + p * panel_stride + first, 0}, {rows, kLanes}));
  }
  return concat(parts, 1);
}

// IEEE half bits in the low 16 of each word, exactly as f32, denormals included (the vector unit
// has no half format and flushes f32 denormals, so small halves are made by an integer conversion).
Vec half_to_f32(Vec h) {
  const Vec exponent = shift_right_logical(h, 10) & 0x1f, mantissa = h & 0x3ff;
  const Vec normal = bitcast(shift_left(exponent + 112, 23) | shift_left(mantissa, 13), Elem::kF32);
  const Vec small = cast(mantissa, Elem::kF32) * 0x1p-24;
  const Vec magnitude = where(exponent == 0, small, normal);
  return where((h & 0x8000) == 0, magnitude, neg(magnitude));
}

// The scale of the groups of word `raw` (E8M0 bytes of four groups) as f32: the byte is the
// exponent.
Vec power_of_two(Vec raw, int64_t group) {
  const Vec byte = shift_right_logical(raw, static_cast<int>(8 * (group % 4))) & 0xff;
  return bitcast(shift_left(byte, 23), Elem::kF32);
}

// Codes of one MXU pass as bf16 [tile_k, P * 128].
Vec codes(const MatrixLayout& m, Ref tile, int64_t k, int64_t tile_k) {
  const int64_t stride = weights::code_rows(m.shape.format, m.kp);
  const int64_t per_word = m.shape.format == Format::kQ8 ? 4 : 8;
  Vec w = words(m, tile, 0, stride, k / per_word, tile_k / per_word);
  if (per_word == 4) return cast(bitcast(w, Elem::kI8), Elem::kBf16);
  if (m.shape.format == Format::kMxfp4) return cast(bitcast(w, Elem::kF4E2M1FN), Elem::kBf16);
  // Code c of 0..15 stands for c - 8: with its top bit flipped it is just that as a signed nibble.
  return cast(bitcast(w ^ static_cast<int>(0x88888888u), Elem::kI4), Elem::kBf16);
}

// Block-diagonal activations: row (b, r) is row r of x masked to the 32 inputs of group b, so one
// MXU pass gives the eight group sums separately and the scales are applied in f32 afterwards,
// exactly.
Vec block_diagonal(Vec x, int64_t groups) {
  Kernel& k = *x.kernel();
  const Vec lane = iota(k, x.shape(), 1);
  std::vector<Vec> rows;
  for (int64_t b = 0; b < groups; ++b) {
    const Vec inside =
        (lane >= static_cast<int>(b * kGroup)) & (lane < static_cast<int>((b + 1) * kGroup));
    rows.push_back(cast(where(inside, cast(x, Elem::kF32), 0.0), Elem::kBf16));
  }
  return concat(rows, 0);
}

void quantised(const MatrixLayout& m, int64_t k0, Ref x, Ref tile, Ref y, bool accumulate) {
  Kernel& k = *x.kernel();
  const int64_t rows = x.dim(1), p = m.panels_per_chunk, width = p * kLanes;
  const bool has_min = m.shape.format == Format::kQ4m, powers = m.shape.format == Format::kMxfp4;
  const int64_t scale_base = p * weights::code_rows(m.shape.format, m.kp);
  const int64_t scale_rows = weights::scale_rows(m.shape.format, m.kp);
  const Vec raw = words(m, tile, scale_base, scale_rows, 0, scale_rows);
  Vec low, high;
  if (!powers) {
    low = half_to_f32(raw & 0xffff);
    high = half_to_f32(shift_right_logical(raw, 16));
  }
  // mid = min + 8 * scale: what a code of zero means once codes are counted from -8.
  const Vec mid = has_min ? high + low * 8.0 : raw;
  const auto row_of = [&](Vec v, int64_t i) { return slice(v, {i, 0}, {1, width}); };

  const Vec all = columns(x, k0, m.kp);
  Vec acc = accumulate ? columns(y, 0, width) : zeros(k, Elem::kF32, {rows, width});
  for (int64_t t = 0; t < m.kp; t += kTileK) {
    const int64_t tile_k = std::min(kTileK, m.kp - t), groups = tile_k / kGroup;
    const Vec lhs = block_diagonal(slice(all, {0, t}, {rows, tile_k}), groups);
    const Vec part =
        dot(lhs, codes(m, tile, t, tile_k), zeros(k, Elem::kF32, {groups * rows, width}));
    const Vec sums = has_min ? dot(lhs, full(k, Elem::kBf16, {tile_k, kLanes}, 1.0),
                                   zeros(k, Elem::kF32, {groups * rows, kLanes}))
                             : part;
    for (int64_t b = 0; b < groups; ++b) {
      const int64_t g = t / kGroup + b;
      const Vec scale = powers    ? power_of_two(row_of(raw, g / 4), g)
                        : has_min ? row_of(low, g)
                                  : row_of(g % 2 ? high : low, g / 2);
      acc = acc + slice(part, {b * rows, 0}, {rows, width}) * scale;
      if (has_min)
        acc =
            acc + broadcast(slice(sums, {b * rows, 0}, {rows, 1}), {rows, width}) * row_of(mid, g);
    }
  }
  store_columns(y, acc);
}

}  // namespace

void dot_chunk(const MatrixLayout& m, int64_t part, Ref x, Ref tile, Ref y) {
  Kernel& k = *x.kernel();
  const int64_t k0 = part * m.kp, p = m.panels_per_chunk, rows = x.dim(1);
  const bool accumulate = part > 0;
  k.composite(
      std::string("dot_") + weights::spelling(m.shape.format), {x, tile, y},
      {{"k0", k0}, {"kp", m.kp}, {"panels", p}, {"rows", rows}, {"accumulate", accumulate ? 1 : 0}},
      [&] {
        if (m.shape.format != Format::kBf16) {
          quantised(m, k0, x, tile, y, accumulate);
          return;
        }
        const int64_t half = m.kp / 2;
        const Vec w = bitcast(words(m, tile, 0, half, 0, half), Elem::kBf16);
        const Vec acc =
            accumulate ? columns(y, 0, p * kLanes) : zeros(k, Elem::kF32, {rows, p * kLanes});
        store_columns(y, dot(columns(x, k0, m.kp), w, acc));
      });
}

}  // namespace gridless::blocks
