// Lesson 12: choosing without branches.
//
// The k largest of each row and where they stand. Every round takes the maximum of all rows at
// once, finds its first lane (the smallest lane number among the equal ones), writes both to lane j
// of the results and strikes the winner out. Rows do different things without any branch:
// comparisons give masks, `where` picks by mask. The vector unit has no other kind of decision.
#include <algorithm>
#include <numeric>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kResultLanes = 128;
constexpr double kStruckOut = -3e38;

Built build(const Options& o) {
  const int64_t columns = o["columns"];
  Kernel k("top_k");
  const Ref x = k.input("x", Elem::kF32, {kRows, columns});
  const Ref values = k.output("values", Elem::kF32, {kRows, kResultLanes});
  const Ref indices = k.output("indices", Elem::kI32, {kRows, kResultLanes});

  k.scope([&] {
    const Ref vx = k.vmem(Elem::kF32, {kRows, columns});
    const Ref best = k.vmem(Elem::kF32, {kRows, kResultLanes});
    const Ref place = k.vmem(Elem::kI32, {kRows, kResultLanes});
    const Sems done = k.dma_sems(2);
    k.copy(x, vx, done.at(0)).wait();
    best.store(zeros(k, Elem::kF32, best.shape()));
    place.store(zeros(k, Elem::kI32, place.shape()));

    const Vec lane = iota(k, {kRows, columns}, 1);
    const Vec result_lane = iota(k, {kRows, kResultLanes}, 1);
    k.loop(0, o["k"], vx.load(), [&](Scalar j, Vec left) {
      const Vec top = max_over(left, 1);
      // Lane numbers as f32 are exact up to 2^24, and the lane reduction is made for f32.
      const Vec candidates = where(left == top, cast(lane, Elem::kF32), double{kStruckOut} * -1.0);
      const Vec first = cast(min_over(candidates, 1), Elem::kI32);
      const Vec here = result_lane == j;
      best.store(where(here, top, best.load()));
      place.store(where(here, first, place.load()));
      return where(lane == first, kStruckOut, left);
    });
    const Copy a = k.copy(best, values, done.at(0)), b = k.copy(place, indices, done.at(1));
    a.wait();
    b.wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  // Few different values, so that ties are common.
  Array x = whole(rng, Elem::kF32, {kRows, o["columns"]}, -200, 200);
  return {{std::move(x)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  Array values(Elem::kF32, {kRows, kResultLanes}), indices(Elem::kI32, {kRows, kResultLanes});
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<int64_t> order(static_cast<size_t>(o["columns"]));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, [&](int64_t a, int64_t b) { return in[0][0].at({r, a}) > in[0][0].at({r, b}); });
    for (int64_t j = 0; j < o["k"]; ++j) {
      const int64_t c = order[static_cast<size_t>(j)];
      values.at({r, j}) = in[0][0].at({r, c});
      indices.at({r, j}) = static_cast<double>(c);
    }
  }
  return {{values, indices}};
}

}  // namespace

Lesson lesson_12_top_k() {
  return {.name = "12_top_k",
          .title = "Masks and where: choosing without branches",
          .options = {{"k", 8, "how many of each row", 1, 128},
                      {"columns", 512, "columns (lanes)", 128, 16384, 128}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // nothing is computed, only chosen: exact
}

}  // namespace gridless::kernels
