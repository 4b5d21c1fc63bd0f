#include "gridless/blocks/attention.h"

#include <algorithm>
#include <limits>

namespace gridless::blocks {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// Pages of a row's keys and values on the way or in use: a page takes less time to use than to
// arrive.
constexpr int kPagesAhead = 3;
// Rows of a page that one read-modify-write covers: the packed tile of 16-bit elements.
constexpr int64_t kTileRows = 16;

// Lanes of head j, of a half-split vector (queries, keys) or of a plain one (values, outputs).
Vec lanes_of(Kernel& k, const HeadShape& h, int64_t j, bool half_split) {
  const Vec lane = iota(k, {1, h.padded()}, 1);
  const auto range = [&](int64_t from, int64_t n) {
    return (lane >= static_cast<int>(from)) & (lane < static_cast<int>(from + n));
  };
  const int64_t d = h.head_dim;
  if (!half_split) return range(j * d, d);
  return range(j * d / 2, d / 2) | range(h.half() + j * d / 2, d / 2);
}

}  // namespace

RopeTable rope_table(const StepRows& rows, Ref frequencies, const HeadShape& h) {
  Kernel& k = *frequencies.kernel();
  const int64_t count = rows.count, width = h.padded_half();
  RopeTable out{k.vmem(Elem::kF32, {count, width}), k.vmem(Elem::kF32, {count, width})};
  k.scope([&] {
    const Ref local = k.vmem(Elem::kF32, {1, width});
    const Sem done = k.dma_sem();
    k.copy(frequencies, local, done).wait();
    const Vec row = iota(k, {count, width}, 0);
    Vec position = zeros(k, Elem::kI32, {count, width});
    for (int64_t r = 0; r < count; ++r) {
      position =
          where(row == static_cast<int>(r), broadcast(rows.position(r), {count, width}), position);
    }
    const Vec angle = cast(position, Elem::kF32) * local.load();
    out.cos.store(cos(angle));
    out.sin.store(sin(angle));
  });
  return out;
}

void qkv_rope(Ref y, const RopeTable& rope, const HeadShape& h, Ref qkv) {
  Kernel& k = *y.kernel();
  const int64_t rows = y.dim(1), half = h.half();
  k.composite("qkv_rope", {y, rope.cos, rope.sin, qkv},
              {{"groups", h.groups}, {"width", h.width()}, {"rows", rows}}, [&] {
                const auto put = [&](int64_t i, Vec v) {
                  qkv.store(
                      reshape(cast(pad_lanes(v, h.padded()), Elem::kBf16), {1, rows, h.padded()}),
                      {i, 0, 0});
                };
                for (int64_t i = 0; i < h.groups + 1; ++i) {
                  const Vec lo = columns(y, i * h.width(), half),
                            hi = columns(y, i * h.width() + half, half);
                  const Vec c = slice(rope.cos.load(), {0, 0}, {rows, half});
                  const Vec s = slice(rope.sin.load(), {0, 0}, {rows, half});
                  put(i, concat({lo * c - hi * s, hi * c + lo * s}, 1));
                }
                put(h.groups + 1, columns(y, (h.groups + 1) * h.width(), h.width()));
              });
}

void kv_append(Ref qkv, Ref cache, const StepRows& rows, const HeadShape& h) {
  Kernel& k = *qkv.kernel();
  const int64_t width = h.padded();
  k.composite("kv_append", {qkv, cache, rows.table, rows.pages},
              {{"groups", h.groups}, {"rows", rows.count}}, [&] {
                const Ref tile = k.vmem(Elem::kBf16, {2, kTileRows, width});
                const Sem done = k.dma_sem();
                // Row after row: two new rows of one tile must not overwrite each other.
                k.loop(0, rows.count, [&](Scalar r) {
                  k.if_(rows.active(r), [&] {
                    const Scalar position = rows.position(r);
                    const Scalar page = rows.pages.get({rows.slot(r), position / kPageTokens});
                    const Scalar first = position % kPageTokens / kTileRows * kTileRows;
                    const Ref home = cache.at(page).slice({0, first, 0}, {2, kTileRows, width});
                    k.copy(home, tile, done).wait();
                    const Vec row = iota(k, {kTileRows, width}, 0);
                    for (int64_t i = 0; i < 2; ++i) {  // key, value
                      const Vec fresh = pick_row(qkv.at(h.groups + i).load(), r);
                      const Vec old = cast(tile.at(i).load(), Elem::kF32);
                      const Vec next =
                          where(row == position % kTileRows,
                                broadcast(cast(fresh, Elem::kF32), {kTileRows, width}), old);
                      tile.at(i).store(cast(next, Elem::kBf16));
                    }
                    k.copy(tile, home, done).wait();
                  });
                });
              });
}

void decode_attention(Ref qkv, Ref cache, const StepRows& rows, const HeadShape& h, double scale,
                      Ref out) {
  Kernel& k = *qkv.kernel();
  const int64_t width = h.padded(), queries = h.groups * h.heads;
  k.composite(
      "decode_attention", {qkv, cache, rows.table, rows.pages, out},
      {{"groups", h.groups},
       {"heads", h.heads},
       {"head_dim", h.head_dim},
       {"width", h.width()},
       {"rows", rows.count},
       {"scale", scale}},
      [&] {
        const Ref ring = k.vmem(Elem::kBf16, {kPagesAhead + 1, 2, kPageTokens, width});
        const Sems arrived = k.dma_sems(kPagesAhead + 1);
        const Ref sums =
            k.vmem(Elem::kF32, out.shape());  // f32, because single rows of bf16 cannot be stored
        sums.store(zeros(k, Elem::kF32, out.shape()));
        k.loop(0, rows.count, [&](Scalar r) {
          k.if_(rows.active(r), [&] {
            const Scalar position = rows.position(r), slot = rows.slot(r);
            const Scalar pages = position / kPageTokens + 1;
            const auto start = [&](Scalar i) {
              const Scalar place = i % (kPagesAhead + 1);
              k.copy(cache.at(rows.pages.get({slot, i})), ring.at(place), arrived.at(place));
            };
            // A table of few pages cannot be asked for more, even behind a condition.
            const int64_t first = std::min<int64_t>(kPagesAhead, rows.pages.dim(1));
            for (int64_t i = 0; i < first; ++i) k.if_(pages > i, [&] { start(i); });
            // The queries of this row, each in the lanes of its own head: [G*H, width].
            std::vector<Vec> masked;
            for (int64_t g = 0; g < h.groups; ++g) {
              const Vec q = cast(pick_row(qkv.at(g).load(), r), Elem::kF32);
              for (int64_t j = 0; j < h.heads; ++j)
                masked.push_back(where(lanes_of(k, h, j, true), q, 0.0));
            }
            const Vec q = cast(concat(masked, 0), Elem::kBf16);
            const std::vector<Vec> state = k.loop(
                0, pages,
                {full(k, Elem::kF32, {queries, 1}, kMinusInfinity),
                 zeros(k, Elem::kF32, {queries, 1}), zeros(k, Elem::kF32, {queries, width})},
                [&](Scalar i, std::vector<Vec> s) {
                  const Scalar place = i % (kPagesAhead + 1);
                  const Ref page = ring.at(place);
                  k.wait(cache.at(rows.pages.get({slot, i})), page, arrived.at(place));
                  k.if_(i + kPagesAhead < pages, [&] { start(i + kPagesAhead); });
                  const Vec raw =
                      dot_nt(q, page.at(0).load(), zeros(k, Elem::kF32, {queries, kPageTokens})) *
                      scale;
                  const Vec token = iota(k, {queries, kPageTokens}, 1);
                  const Vec score = where(token <= position - i * kPageTokens, raw, kMinusInfinity);
                  const Vec top = max(s[0], max_over(score, 1));
                  const Vec shrink = exp(s[0] - top), p = exp(score - top);
                  const Vec values = dot(cast(p, Elem::kBf16), page.at(1).load(),
                                         zeros(k, Elem::kF32, {queries, width}));
                  return std::vector<Vec>{top, s[1] * shrink + sum(p, 1), s[2] * shrink + values};
                });
            const Vec average = state[2] / state[1];
            std::vector<Vec> parts;
            for (int64_t g = 0; g < h.groups; ++g) {
              Vec o = slice(average, {g * h.heads, 0}, {1, width});
              for (int64_t j = 1; j < h.heads; ++j) {
                o = where(lanes_of(k, h, j, false),
                          slice(average, {g * h.heads + j, 0}, {1, width}), o);
              }
              parts.push_back(slice(o, {0, 0}, {1, h.width()}));
            }
            const Vec row = pad_lanes(concat(parts, 1), out.dim(0) * kLanes);
            for (int64_t p = 0; p < out.dim(0); ++p) {
              sums.store(reshape(slice(row, {0, p * kLanes}, {1, kLanes}), {1, 1, kLanes}),
                         {p, r, 0});
            }
          });
        });
        out.store(cast(sums.load(), Elem::kBf16));
      });
}

}  // namespace gridless::blocks
