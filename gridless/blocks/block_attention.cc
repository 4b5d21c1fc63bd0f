#include "gridless/blocks/block_attention.h"

#include <algorithm>
#include <limits>

namespace gridless::blocks {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
// Pages on the way at once: those of a window of 2048, so that their latencies are one.
constexpr int64_t kPagesAhead = 17;
constexpr int64_t kTileRows = 16;  // the packed tile of 16-bit elements

// Online softmax over the keys and values of one page after another.
class Softmax {
 public:
  Softmax(Kernel& k, Vec q, int64_t width, double scale)
      : k_(k), q_(q), width_(width), scale_(scale) {}

  std::vector<Vec> begin() const {
    const int64_t n = q_.dim(0);
    return {full(k_, Elem::kF32, {n, 1}, kMinusInfinity), zeros(k_, Elem::kF32, {n, 1}),
            zeros(k_, Elem::kF32, {n, width_})};
  }
  // keys, values: bf16 [128, width]; allowed: i1 [queries, 128].
  std::vector<Vec> add(const std::vector<Vec>& s, Vec keys, Vec values, Vec allowed) const {
    const int64_t n = q_.dim(0);
    const Vec raw = dot_nt(q_, keys, zeros(k_, Elem::kF32, {n, kPageTokens})) * scale_;
    const Vec score = where(allowed, raw, kMinusInfinity);
    const Vec top = max(s[0], max_over(score, 1));
    const Vec shrink = exp(s[0] - top), p = exp(score - top);
    const Vec sums = dot(cast(p, Elem::kBf16), values, zeros(k_, Elem::kF32, {n, width_}));
    return {top, s[1] * shrink + sum(p, 1), s[2] * shrink + sums};
  }

 private:
  Kernel& k_;
  Vec q_;
  int64_t width_;
  double scale_;
};

// [R, width] with zero rows behind, as a page.
Vec as_page(Vec rows) {
  Kernel& k = *rows.kernel();
  const Vec rest = zeros(k, Elem::kF32, {kPageTokens - rows.dim(0), rows.dim(1)});
  return cast(concat({cast(rows, Elem::kF32), rest}, 0), Elem::kBf16);
}

// Queries of all groups and heads, each in the lanes of its own head: [G*H*R, padded].
Vec masked_queries(Ref qkv, const HeadShape& h) {
  Kernel& k = *qkv.kernel();
  std::vector<Vec> all;
  for (int64_t g = 0; g < h.groups; ++g) {
    const Vec q = cast(qkv.at(g).load(), Elem::kF32);
    for (int64_t j = 0; j < h.heads; ++j)
      all.push_back(h.heads == 1 ? q : where(lanes_of(k, h, j, true), q, 0.0));
  }
  return cast(concat(all, 0), Elem::kBf16);
}

// average: [G*H*R, padded], of which each row counts in the lanes of its head.
void store_context(Vec average, const HeadShape& h, int64_t rows, Ref out) {
  Kernel& k = *average.kernel();
  std::vector<Vec> parts;
  for (int64_t g = 0; g < h.groups; ++g) {
    const auto of_head = [&](int64_t j) {
      return slice(average, {(g * h.heads + j) * rows, 0}, {rows, h.padded()});
    };
    Vec o = of_head(0);
    for (int64_t j = 1; j < h.heads; ++j) o = where(lanes_of(k, h, j, false), of_head(j), o);
    parts.push_back(slice(o, {0, 0}, {rows, h.width()}));
  }
  const Vec all = pad_lanes(concat(parts, 1), out.dim(0) * kLanes);
  for (int64_t p = 0; p < out.dim(0); ++p) {
    const Vec panel = cast(slice(all, {0, p * kLanes}, {rows, kLanes}), Elem::kBf16);
    out.store(reshape(panel, {1, rows, kLanes}), {p, 0, 0});
  }
}

}  // namespace

KvAppendRun::KvAppendRun(Ref cache, const StepRows& rows) : k_(*cache.kernel()), rows_(rows) {
  Scalar active = where(rows.active(0), 1, 0);
  for (int64_t r = 1; r < rows.count; ++r) active = active + where(rows.active(r), 1, 0);
  const Scalar last = where(active > 0, rows.position(0) + active - 1, -1);
  const int64_t most = (rows.count + kTileRows - 2) / kTileRows + 1;
  const Sems done = k_.dma_sems(most);
  for (int64_t i = 0; i < most; ++i) {
    Tile t{.local = k_.vmem(Elem::kBf16, {2, kTileRows, cache.dim(3)}), .done = done.at(i)};
    t.start = rows.position(0) / kTileRows * kTileRows + i * kTileRows;
    t.used = t.start <= last;
    const Scalar position = min(t.start, max(last, 0));  // of a tile that is not used: any
    const Scalar page = rows.pages.get({rows.slot(0), position / kPageTokens});
    const Scalar offset = position % kPageTokens / kTileRows * kTileRows;
    t.home = cache.at(page).slice({0, offset, 0}, {2, kTileRows, cache.dim(3)});
    k_.if_(t.used, [&] { k_.copy(t.home, t.local, t.done); });
    tiles_.push_back(t);
  }
}

// Puts the rows that belong into a tile in, and sends it home.
void KvAppendRun::patch(const Tile& t, Ref qkv, int64_t key) {
  k_.wait(t.home, t.local, t.done);
  for (int64_t i = 0; i < 2; ++i) {
    const Vec at = iota(k_, {kTileRows, t.local.dim(2)}, 0);
    const Vec next =
        k_.loop(0, rows_.count, cast(t.local.at(i).load(), Elem::kF32), [&](Scalar r, Vec old) {
          const Vec fresh = cast(pick_row(qkv.at(key + i).load(), r), Elem::kF32);
          // An inactive row is nowhere.
          const Scalar place = where(rows_.active(r), rows_.position(r) - t.start, -1);
          return where(at == place, broadcast(fresh, at.shape()), old);
        });
    t.local.at(i).store(cast(next, Elem::kBf16));
  }
  k_.copy(t.local, t.home, t.done);
}

void KvAppendRun::put(Ref qkv, const HeadShape& h) {
  for (const Tile& t : tiles_) k_.if_(t.used, [&] { patch(t, qkv, h.groups); });
  for (const Tile& t : tiles_) k_.if_(t.used, [&] { k_.wait(t.local, t.home, t.done); });
}

void block_attention(Ref qkv, Ref cache, const StepRows& rows, Scalar first, const HeadShape& h,
                     int64_t window, double scale, Ref out) {
  Kernel& k = *qkv.kernel();
  const int64_t width = h.padded(), count = rows.count, queries = h.groups * h.heads * count;
  k.scope([&] {
    // A table of few pages cannot be asked for more, even behind a condition.
    const int64_t ahead = std::min({kPagesAhead, rows.pages.dim(1), window / kPageTokens + 2});
    const Ref ring = k.vmem(Elem::kBf16, {ahead + 1, 2, kPageTokens, width});
    const Sems arrived = k.dma_sems(ahead + 1);
    const Scalar start = rows.position(0), slot = rows.slot(0);
    const Scalar lowest = max(first, start - (window - 1));
    const Scalar from = lowest / kPageTokens, to = (start + (kPageTokens - 1)) / kPageTokens;
    const auto copy = [&](Scalar i, bool begin) {
      const Scalar place = i % (ahead + 1);
      const Ref page = cache.at(rows.pages.get({slot, i}));
      if (begin) {
        k.copy(page, ring.at(place), arrived.at(place));
      } else {
        k.wait(page, ring.at(place), arrived.at(place));
      }
    };
    for (int64_t i = 0; i < ahead; ++i) k.if_(from + i < to, [&] { copy(from + i, true); });

    const Softmax softmax(k, masked_queries(qkv, h), width, scale);
    // The row of every query, and the lane: a token of a page.
    const Vec row = concat(
        std::vector<Vec>(static_cast<size_t>(h.groups * h.heads), iota(k, {count, kPageTokens}, 0)),
        0);
    const Vec lane = iota(k, {queries, kPageTokens}, 1);
    const int64_t reach = std::min(window, int64_t{1} << 30);
    // The block first: a row always sees itself, so the maximum is a number from here on.
    Vec seen = lane < static_cast<int>(count);
    if (reach < count)
      seen = seen & (lane - row < static_cast<int>(reach)) & (row - lane < static_cast<int>(reach));
    std::vector<Vec> state = softmax.add(softmax.begin(), as_page(qkv.at(h.groups).load()),
                                         as_page(qkv.at(h.groups + 1).load()), seen);
    state = k.loop(from, to, std::move(state), [&](Scalar i, std::vector<Vec> s) {
      copy(i, false);
      k.if_(i + ahead < to, [&] { copy(i + ahead, true); });
      const Ref page = ring.at(i % (ahead + 1));
      const Vec token = lane + i * kPageTokens;
      const Vec allowed =
          (token >= first) & (token < start) & (token - row > start - static_cast<int>(reach));
      return softmax.add(s, page.at(0).load(), page.at(1).load(), allowed);
    });
    store_context(state[2] / state[1], h, count, out);
  });
}

}  // namespace gridless::blocks
