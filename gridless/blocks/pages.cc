#include "gridless/blocks/pages.h"

#include <algorithm>
#include <limits>

namespace gridless::blocks {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// Pages of a row on the way or in use: a page takes less time to use than to arrive.
constexpr int kPagesAhead = 3;
// Rows of a page that one read-modify-write covers: the packed tile of 16-bit elements.
constexpr int64_t kTileRows = 16;

}  // namespace

void append_to_pages(const std::vector<Ref>& fresh, Ref cache, const StepRows& rows) {
  Kernel& k = *cache.kernel();
  const auto parts = static_cast<int64_t>(fresh.size());
  const int64_t width = cache.dim(-1);
  const Ref tile = k.vmem(Elem::kBf16, {parts, kTileRows, width});
  const Sem done = k.dma_sem();
  // Row after row: two new rows of one tile must not overwrite each other.
  k.loop(0, rows.count, [&](Scalar r) {
    k.if_(rows.active(r), [&] {
      const Scalar position = rows.position(r);
      const Scalar page = rows.pages.get({rows.slot(r), position / kPageTokens});
      const Scalar first = position % kPageTokens / kTileRows * kTileRows;
      const Ref home = cache.at(page).slice({0, first, 0}, {parts, kTileRows, width});
      k.copy(home, tile, done).wait();
      const Vec row = iota(k, {kTileRows, width}, 0);
      for (int64_t i = 0; i < parts; ++i) {
        const Vec mine = pick_row(fresh[static_cast<size_t>(i)].load(), r);
        const Vec old = cast(tile.at(i).load(), Elem::kF32);
        const Vec next = where(row == position % kTileRows,
                               broadcast(cast(mine, Elem::kF32), {kTileRows, width}), old);
        tile.at(i).store(cast(next, Elem::kBf16));
      }
      k.copy(tile, home, done).wait();
    });
  });
}

PagedSoftmax::PagedSoftmax(Ref cache, const StepRows& rows) : cache_(cache), rows_(rows) {
  Kernel& k = *cache.kernel();
  ring_ = k.vmem(Elem::kBf16, {kPagesAhead + 1, cache.dim(1), kPageTokens, cache.dim(3)});
  arrived_ = k.dma_sems(kPagesAhead + 1);
}

Vec PagedSoftmax::attend(Scalar r, const Use& use) const {
  Kernel& k = *cache_.kernel();
  const Scalar position = rows_.position(r), slot = rows_.slot(r);
  const Scalar pages = position / kPageTokens + 1;
  const auto start = [&](Scalar i) {
    const Scalar place = i % (kPagesAhead + 1);
    k.copy(cache_.at(rows_.pages.get({slot, i})), ring_.at(place), arrived_.at(place));
  };
  // A table of few pages cannot be asked for more, even behind a condition.
  const int64_t first = std::min<int64_t>(kPagesAhead, rows_.pages.dim(1));
  for (int64_t i = 0; i < first; ++i) k.if_(pages > i, [&] { start(i); });
  const Vec q = use.queries();
  const int64_t n = use.count;
  const std::vector<Vec> state =
      k.loop(0, pages,
             {full(k, Elem::kF32, {n, 1}, kMinusInfinity), zeros(k, Elem::kF32, {n, 1}),
              zeros(k, Elem::kF32, {n, use.value_width})},
             [&](Scalar i, std::vector<Vec> s) {
               const Scalar place = i % (kPagesAhead + 1);
               const Ref page = ring_.at(place);
               k.wait(cache_.at(rows_.pages.get({slot, i})), page, arrived_.at(place));
               k.if_(i + kPagesAhead < pages, [&] { start(i + kPagesAhead); });
               const Vec raw =
                   dot_nt(q, use.keys(page), zeros(k, Elem::kF32, {n, kPageTokens})) * use.scale;
               const Vec token = iota(k, {n, kPageTokens}, 1);
               const Vec score = where(token <= position - i * kPageTokens, raw, kMinusInfinity);
               const Vec top = max(s[0], max_over(score, 1));
               const Vec shrink = exp(s[0] - top), p = exp(score - top);
               const Vec values = dot(cast(p, Elem::kBf16), use.values(page),
                                      zeros(k, Elem::kF32, {n, use.value_width}));
               return std::vector<Vec>{top, s[1] * shrink + sum(p, 1), s[2] * shrink + values};
             });
  return state[2] / state[1];
}

}  // namespace gridless::blocks
