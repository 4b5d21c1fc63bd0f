#include "gridless/blocks/pages.h"

#include <algorithm>
#include <limits>

namespace gridless::blocks {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// Pages of keys and values on the way or in use: HBM answers after 0.7 us, in which a core can read
// 2 MiB.
constexpr int64_t kPageRingBytes = int64_t{2} << 20, kFewestPages = 8, kMostPages = 16;
// Pages that are worked on at once: scores, their maximum and the sum over the values wait for each
// other, for as long as a product takes to leave the matrix units.
constexpr int64_t kPagesAtOnce = 4;
static_assert(kFewestPages >= 2 * kPagesAtOnce);
// Rows that a page is read for at once: the sublanes of a register. Their sums stay in registers.
constexpr int64_t kMostBlockRows = 8, kMostSumElements = 64 * 1024;
// Rows of a page that one read-modify-write covers: the packed tile of 16-bit elements.
constexpr int64_t kTileRows = 16;

}  // namespace

void append_to_pages(const std::vector<Ref>& fresh_rows, Ref cache, const StepRows& rows,
                     const RowRuns& runs) {
  Kernel& k = *cache.kernel();
  const auto parts = static_cast<int64_t>(fresh_rows.size());
  const int64_t width = cache.dim(-1), count = rows.count;
  const Ref fresh = k.vmem(Elem::kF32, {parts, count, width});  // f32: rows are picked one by one
  const Ref tiles = k.vmem(Elem::kBf16, {count, parts, kTileRows, width});
  const Sem done = k.dma_sem();
  for (int64_t i = 0; i < parts; ++i) {
    fresh.at(i).store(cast(fresh_rows[static_cast<size_t>(i)].load(), Elem::kF32));
  }
  const auto home = [&](Scalar r) {
    const Scalar position = rows.position(r);
    const Scalar page = rows.pages.get({rows.slot(r), position / kPageTokens});
    const Scalar first = position % kPageTokens / kTileRows * kTileRows;
    return cache.at(page).slice({0, first, 0}, {parts, kTileRows, width});
  };
  // A row has a tile of its own, unless the row before it in its run has that tile.
  const auto each_tile = [&](const std::function<void(Scalar)>& use) {
    k.loop(0, count, [&](Scalar r) {
      const auto opens = rows.position(r) % kTileRows == 0 || runs.first(r) == r;
      k.if_(rows.active(r) && opens, [&] { use(r); });
    });
  };
  each_tile([&](Scalar r) { k.copy(home(r), tiles.at(r), done); });
  each_tile([&](Scalar r) { k.wait(home(r), tiles.at(r), done); });
  k.loop(0, count, [&](Scalar r) {
    k.if_(rows.active(r), [&] {
      const Scalar inside = rows.position(r) % kTileRows;
      const Ref tile = tiles.at(max(runs.first(r), r - inside));
      const Vec row = iota(k, {kTileRows, width}, 0);
      for (int64_t i = 0; i < parts; ++i) {
        const Vec next = reshape(fresh.load({i, r, 0}, {1, 1, width}), {1, width});
        const Vec old = cast(tile.at(i).load(), Elem::kF32);
        tile.at(i).store(
            cast(where(row == inside, broadcast(next, {kTileRows, width}), old), Elem::kBf16));
      }
    });
  });
  each_tile([&](Scalar r) { k.copy(tiles.at(r), home(r), done); });
  each_tile([&](Scalar r) { k.wait(tiles.at(r), home(r), done); });
}

namespace {

// Attention of `size` rows of the launch at a time: every page of a run meets the queries of all of
// them, and what belongs to rows of other runs is left out at the end.
class RowBlock {
 public:
  RowBlock(Ref cache, const StepRows& rows, const RowRuns& runs, const PageReader& reader,
           int64_t size)
      : k_(*cache.kernel()), cache_(cache), rows_(rows), runs_(runs), reader_(reader), size_(size) {
    ring_ = k_.vmem(Elem::kBf16, {pages_held(), cache.dim(1), kPageTokens, cache.dim(3)});
    arrived_ = k_.dma_sems(pages_held());
    // Pages behind the last one are worked on with it, with weights of zero: they must be numbers.
    ring_.store(zeros(k_, Elem::kBf16, ring_.shape()));
  }

  // Rows first .. first + size - 1.
  void attend(Scalar first) {
    k_.loop(0, size_, [&](Scalar i) {
      const Scalar r = first + i;
      const auto leads = runs_.first(r) == r || i == 0;
      k_.if_(rows_.active(r) && leads, [&] { attend_run(first, r); });
    });
  }

 private:
  // Pages on the way or in use: enough to cover the latency of HBM.
  int64_t pages_held() const {
    const int64_t page_bytes = cache_.dim(1) * kPageTokens * cache_.dim(3) * 2;
    return std::clamp<int64_t>(kPageRingBytes / page_bytes, kFewestPages, kMostPages);
  }
  // [size, lanes], the same in all lanes: `of` row i.
  Vec by_row(int64_t lanes, const std::function<Scalar(int64_t)>& of) {
    const Vec row = iota(k_, {size_, lanes}, 0);
    Vec out = broadcast(of(0), {size_, lanes});
    for (int64_t i = 1; i < size_; ++i) {
      out = where(row == static_cast<int>(i), broadcast(of(i), {size_, lanes}), out);
    }
    return out;
  }
  Vec of_queries(Vec of_rows) {
    return concat(std::vector<Vec>(static_cast<size_t>(reader_.queries), of_rows), 0);
  }

  // The rows from r on that belong to r's run.
  void attend_run(Scalar first, Scalar r) {
    const int64_t q_rows = reader_.queries * size_, width = reader_.value_width;
    const int64_t held = pages_held();
    const int64_t at_once = std::min<int64_t>(kPagesAtOnce, rows_.pages.dim(1));
    const Scalar slot = rows_.slot(r);
    const Scalar last = min(r + runs_.after(r), first + (size_ - 1));
    const Scalar pages = rows_.position(last) / kPageTokens + 1;
    const auto page = [&](Scalar i) { return cache_.at(rows_.pages.get({slot, i})); };
    const auto start = [&](Scalar i) {
      k_.copy(page(i), ring_.at(i % held), arrived_.at(i % held));
    };
    // (A table of few pages cannot be asked for more, even behind a condition.)
    const int64_t ahead = held - at_once, at_first = std::min(ahead, rows_.pages.dim(1));
    k_.loop(0, min(pages, Scalar(at_first)), [&](Scalar i) { start(i); });
    const Vec q = reader_.queries_of(first, size_);
    // The position of a row of the run; others go as far as r, for nothing.
    const auto in_run = [&](int64_t i) { return first + i >= r && first + i <= last; };
    const Vec limit = of_queries(by_row(kPageTokens * at_once, [&](int64_t i) {
      return where(in_run(i), rows_.position(first + i), rows_.position(r));
    }));
    const std::vector<Vec> state = k_.loop(
        0, (pages + (at_once - 1)) / at_once,
        {full(k_, Elem::kF32, {q_rows, 1}, kMinusInfinity), zeros(k_, Elem::kF32, {q_rows, 1}),
         zeros(k_, Elem::kF32, {q_rows, width})},
        [&](Scalar group, std::vector<Vec> s) {
          const Scalar from = group * at_once;
          for (int64_t i = 0; i < at_once; ++i) {
            const Scalar p = from + i;
            k_.if_(p < pages, [&] { k_.wait(page(p), ring_.at(p % held), arrived_.at(p % held)); });
          }
          for (int64_t i = 0; i < at_once; ++i) {
            const Scalar p = from + i + ahead;
            k_.if_(p < pages, [&] { start(p); });
          }
          std::vector<Vec> products, values;
          for (int64_t i = 0; i < at_once; ++i) {
            const Ref here = ring_.at((from + i) % held);
            products.push_back(
                dot_nt(q, reader_.keys(here), zeros(k_, Elem::kF32, {q_rows, kPageTokens})));
            values.push_back(reader_.values(here));
          }
          const Vec raw = concat(products, 1) * reader_.scale;
          const Vec token = iota(k_, raw.shape(), 1) + from * kPageTokens;
          const Vec score = where(token <= limit, raw, kMinusInfinity);
          const Vec top = max(s[0], max_over(score, 1));
          const Vec shrink = exp(s[0] - top), p = exp(score - top);
          const Vec add =
              dot(cast(p, Elem::kBf16), concat(values, 0), zeros(k_, Elem::kF32, {q_rows, width}));
          return std::vector<Vec>{top, s[1] * shrink + sum(p, 1), s[2] * shrink + add};
        });
    const Vec mine =
        by_row(kLanes, [&](int64_t i) { return where(in_run(i), Scalar(1), Scalar(0)); }) == 1;
    reader_.put(first, size_, state[2] / state[1], mine);
  }

  Kernel& k_;
  Ref cache_;
  const StepRows& rows_;
  const RowRuns& runs_;
  const PageReader& reader_;
  int64_t size_;
  Ref ring_;
  Sems arrived_;
};

}  // namespace

void attend_to_pages(Ref cache, const StepRows& rows, const RowRuns& runs,
                     const PageReader& reader) {
  // A tile of rows if their sums fit the registers, else row by row: other numbers of rows do not
  // begin at tiles.
  const int64_t tile = std::min(rows.count, kMostBlockRows);
  const bool fits = tile * reader.queries * reader.value_width <= kMostSumElements;
  const int64_t size = rows.count % tile == 0 && fits ? tile : 1;
  RowBlock block(cache, rows, runs, reader, size);
  if (rows.count == size) {
    block.attend(0);
  } else {
    cache.kernel()->loop(0, rows.count / size, [&](Scalar b) { block.attend(b * size); });
  }
}

void store_rows(Ref to, int64_t p, Scalar first, Vec rows, Vec mine) {
  const Shape one = {1, rows.dim(0), kLanes};
  const Vec old = reshape(to.load({p, first, 0}, one), {rows.dim(0), kLanes});
  to.store(reshape(where(mine, rows, old), one), {p, first, 0});
}

}  // namespace gridless::blocks
