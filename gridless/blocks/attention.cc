#include "gridless/blocks/attention.h"

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

Vec lanes_of(Kernel& k, const HeadShape& h, int64_t j, bool half_split) {
  const Vec lane = iota(k, {1, h.padded()}, 1);
  const auto range = [&](int64_t from, int64_t n) {
    return (lane >= static_cast<int>(from)) & (lane < static_cast<int>(from + n));
  };
  const int64_t d = h.head_dim;
  if (!half_split) return range(j * d, d);
  return range(j * d / 2, d / 2) | range(h.half() + j * d / 2, d / 2);
}

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

void kv_append(Ref qkv, Ref cache, const StepRows& rows, const RowRuns& runs, const HeadShape& h) {
  Kernel& k = *qkv.kernel();
  const int64_t width = h.padded(), count = rows.count;
  const auto body = [&] {
    const Ref fresh = k.vmem(Elem::kF32, {2, count, width});  // f32: rows are picked one by one
    const Ref tiles = k.vmem(Elem::kBf16, {count, 2, kTileRows, width});
    const Sem done = k.dma_sem();
    for (int64_t i = 0; i < 2; ++i) {  // key, value
      fresh.at(i).store(cast(qkv.at(h.groups + i).load(), Elem::kF32));
    }
    const auto home = [&](Scalar r) {
      const Scalar position = rows.position(r);
      const Scalar page = rows.pages.get({rows.slot(r), position / kPageTokens});
      const Scalar first = position % kPageTokens / kTileRows * kTileRows;
      return cache.at(page).slice({0, first, 0}, {2, kTileRows, width});
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
        for (int64_t i = 0; i < 2; ++i) {
          const Vec next = reshape(fresh.load({i, r, 0}, {1, 1, width}), {1, width});
          const Vec old = cast(tile.at(i).load(), Elem::kF32);
          tile.at(i).store(
              cast(where(row == inside, broadcast(next, {kTileRows, width}), old), Elem::kBf16));
        }
      });
    });
    each_tile([&](Scalar r) { k.copy(tiles.at(r), home(r), done); });
    each_tile([&](Scalar r) { k.wait(tiles.at(r), home(r), done); });
  };
  k.composite("kv_append", {qkv, cache, rows.table, rows.pages, runs.first_table()},
              {{"groups", h.groups}, {"rows", count}}, body);
}

namespace {

// Attention of `size` rows of the launch at a time: every page of a run meets the queries of all of
// them, and what belongs to rows of other runs is left out at the end.
class RowBlock {
 public:
  RowBlock(Kernel& k, Ref queries, Ref cache, const StepRows& rows, const RowRuns& runs,
           const HeadShape& h, double scale, int64_t size, Ref sums)
      : k_(k),
        queries_(queries),
        cache_(cache),
        rows_(rows),
        runs_(runs),
        h_(h),
        scale_(scale),
        size_(size),
        sums_(sums) {
    ring_ = k.vmem(Elem::kBf16, {pages_held(), 2, kPageTokens, h.padded()});
    arrived_ = k.dma_sems(pages_held());
    // Pages behind the last one are worked on with it, with weights of zero: they must be numbers.
    ring_.store(zeros(k, Elem::kBf16, ring_.shape()));
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
  int64_t queries() const { return h_.groups * h_.heads * size_; }
  // Pages on the way or in use: enough to cover the latency of HBM.
  int64_t pages_held() const {
    const int64_t page_bytes = 2 * kPageTokens * h_.padded() * 2;
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
    return concat(std::vector<Vec>(static_cast<size_t>(h_.groups * h_.heads), of_rows), 0);
  }

  // The queries of all rows, group by group and head by head, each in the lanes of its own head.
  Vec masked_queries(Scalar first) {
    std::vector<Vec> all;
    for (int64_t g = 0; g < h_.groups; ++g) {
      const Vec q =
          reshape(queries_.load({g, first, 0}, {1, size_, h_.padded()}), {size_, h_.padded()});
      for (int64_t j = 0; j < h_.heads; ++j)
        all.push_back(where(lanes_of(k_, h_, j, true), q, 0.0));
    }
    return cast(concat(all, 0), Elem::kBf16);
  }

  // The rows from r on that belong to r's run.
  void attend_run(Scalar first, Scalar r) {
    const int64_t q_rows = queries(), width = h_.padded(), held = pages_held();
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
    const Vec q = masked_queries(first);
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
            const Ref keys_values = ring_.at((from + i) % held);
            products.push_back(
                dot_nt(q, keys_values.at(0).load(), zeros(k_, Elem::kF32, {q_rows, kPageTokens})));
            values.push_back(keys_values.at(1).load());
          }
          const Vec raw = concat(products, 1) * scale_;
          const Vec token = iota(k_, raw.shape(), 1) + from * kPageTokens;
          const Vec score = where(token <= limit, raw, kMinusInfinity);
          const Vec top = max(s[0], max_over(score, 1));
          const Vec shrink = exp(s[0] - top), p = exp(score - top);
          const Vec add =
              dot(cast(p, Elem::kBf16), concat(values, 0), zeros(k_, Elem::kF32, {q_rows, width}));
          return std::vector<Vec>{top, s[1] * shrink + sum(p, 1), s[2] * shrink + add};
        });
    put(first, state[2] / state[1],
        by_row(kLanes, [&](int64_t i) { return where(in_run(i), Scalar(1), Scalar(0)); }) == 1);
  }

  // Averages [G H size, width] of the rows of which `mine` [size, 128] says so.
  void put(Scalar first, Vec average, Vec mine) {
    std::vector<Vec> parts;
    for (int64_t g = 0; g < h_.groups; ++g) {
      const auto of_head = [&](int64_t j) {
        return slice(average, {(g * h_.heads + j) * size_, 0}, {size_, h_.padded()});
      };
      Vec o = of_head(0);
      for (int64_t j = 1; j < h_.heads; ++j) {
        o = where(lanes_of(k_, h_, j, false), of_head(j), o);
      }
      parts.push_back(slice(o, {0, 0}, {size_, h_.width()}));
    }
    const Vec all = pad_lanes(concat(parts, 1), sums_.dim(0) * kLanes);
    for (int64_t p = 0; p < sums_.dim(0); ++p) {
      const Vec old = reshape(sums_.load({p, first, 0}, {1, size_, kLanes}), {size_, kLanes});
      const Vec next = where(mine, slice(all, {0, p * kLanes}, {size_, kLanes}), old);
      sums_.store(reshape(next, {1, size_, kLanes}), {p, first, 0});
    }
  }

  Kernel& k_;
  Ref queries_;  // f32 [G, R, padded]
  Ref cache_;
  const StepRows& rows_;
  const RowRuns& runs_;
  const HeadShape& h_;
  double scale_;
  int64_t size_;
  Ref sums_;  // f32, as `out`
  Ref ring_;
  Sems arrived_;
};

// A tile of rows if their sums fit the registers, else row by row: other numbers of rows do not
// begin at tiles.
int64_t rows_per_block(int64_t rows, const HeadShape& h) {
  const int64_t size = std::min(rows, kMostBlockRows);
  const bool fits = size * h.groups * h.heads * h.padded() <= kMostSumElements;
  return rows % size == 0 && fits ? size : 1;
}

}  // namespace

void decode_attention(Ref qkv, Ref cache, const StepRows& rows, const RowRuns& runs,
                      const HeadShape& h, double scale, Ref out) {
  Kernel& k = *qkv.kernel();
  const int64_t size = rows_per_block(rows.count, h);
  const auto body = [&] {
    // f32, because rows of bf16 can be neither read nor written one by one.
    const Ref queries = k.vmem(Elem::kF32, {h.groups, rows.count, h.padded()});
    const Ref sums = k.vmem(Elem::kF32, out.shape());
    for (int64_t g = 0; g < h.groups; ++g) {
      queries.at(g).store(cast(qkv.at(g).load(), Elem::kF32));
    }
    sums.store(zeros(k, Elem::kF32, out.shape()));
    RowBlock block(k, queries, cache, rows, runs, h, scale, size, sums);
    if (rows.count == size) {
      block.attend(0);
    } else {
      k.loop(0, rows.count / size, [&](Scalar b) { block.attend(b * size); });
    }
    out.store(cast(sums.load(), Elem::kBf16));
  };
  k.composite("decode_attention",
              {qkv, cache, rows.table, rows.pages, out, runs.first_table(), runs.after_table()},
              {{"groups", h.groups},
               {"heads", h.heads},
               {"head_dim", h.head_dim},
               {"width", h.width()},
               {"rows", rows.count},
               {"scale", scale}},
              body);
}

}  // namespace gridless::blocks
