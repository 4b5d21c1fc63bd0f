#include "gridless/blocks/router.h"

#include <limits>

namespace gridless::blocks {

void route(Ref logits, Ref bias, const RouterShape& s, Ref gates, Ref ids) {
  constexpr double kStruckOut = -std::numeric_limits<double>::infinity();
  constexpr double kBeyond = 1e9;  // any expert's number
  Kernel& k = *logits.kernel();
  const Shape& shape = logits.shape();
  const int64_t rows = shape[1];
  // Numbers as f32, which the lane reductions are made for.
  const Vec number =
      cast(iota(k, shape, 0) * static_cast<int>(kLanes) + iota(k, shape, 2), Elem::kF32);
  const Vec p = logistic(logits.load());
  const Vec key = where(number < static_cast<double>(s.experts),
                        p + reshape(bias.load(), {shape[0], 1, kLanes}), kStruckOut);
  const Vec lane = iota(k, {1, rows, kLanes}, 2);
  const std::vector<Vec> state = k.loop(
      0, s.chosen, {key, zeros(k, Elem::kF32, shape), zeros(k, Elem::kF32, {1, rows, kLanes})},
      [&](Scalar j, std::vector<Vec> c) {
        const Vec top = max_over(max_over(c[0], 0), 2);
        const Vec first = min_over(min_over(where(c[0] == top, number, kBeyond), 0), 2);
        const Vec winner = number == first;
        return std::vector<Vec>{where(winner, kStruckOut, c[0]), where(winner, p, c[1]),
                                where(lane == j, first, c[2])};
      });
  gates.store(state[1] / sum(sum(state[1], 0), 2));
  ids.store(cast(reshape(state[2], {rows, kLanes}), Elem::kI32));
}

ChosenExperts::ChosenExperts(Kernel& k, const StepRows& rows, const RouterShape& s, int64_t layers,
                             Scalar first, int64_t count)
    : k_(k),
      rows_(rows),
      shape_(s),
      source_{"expert", 0, s.experts - 1, {layers, rows.count, s.chosen}, /*distinct=*/true},
      first_(first),
      count_(count),
      ids_(k.smem(Elem::kI32, {rows.count, kLanes})),
      marks_(k.smem(Elem::kI32, {count + 1})),
      list_(k.smem(Elem::kI32, {count})),
      done_(k.dma_sem()) {
  k.loop(0, count + 1, [&](Scalar i) { marks_.set({i}, 0); });
}

void ChosenExperts::take(Scalar layer, Ref ids) {
  k_.copy(ids, ids_, done_).wait();
  const Scalar stamp = layer + 1;
  k_.loop(0, rows_.count, [&](Scalar r) {
    k_.loop(0, shape_.chosen, [&](Scalar j) {
      const Scalar mine = source(source_, ids_.get({r, j}), {layer, r, j}) - first_;
      // What is not here, or of no row, goes to the last mark, which nobody reads.
      const Scalar here = rows_.active(r) && mine >= 0 && mine < count_;
      marks_.set({where(here, mine, count_)}, stamp);
    });
  });
  size_ = k_.loop(0, count_, 0, [&](Scalar i, Scalar n) {
    list_.set({n}, i);
    return where(marks_.get({i}) == stamp, n + 1, n);
  });
}

}  // namespace gridless::blocks
