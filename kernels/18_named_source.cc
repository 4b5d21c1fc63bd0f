// Lesson 18: a scalar that comes from data, and what its author knows of it.
//
// A mixture of experts reads the weights of those experts that the router chose: addresses that
// only the data decide. Nobody can prove such a kernel for all data by running it on some. But its
// author knows what the router gives: numbers of experts, k different ones per row. `source` says
// so, with a name. A run with values holds the router to it; a run without (`check --scalars-only`)
// takes the numbers from patterns - all rows to one expert, all to the last ones, ... - or from a
// file, and needs no router at all.
//
// The indices say which value of the source this is: here [row, choice]. The declaration lives in
// the program as an attribute that the TPU compiler ignores.
#include <algorithm>
#include <numeric>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/lang/source.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kLanes = 128;
constexpr double kStruckOut = -3e38;

Built build(const Options& o) {
  const int64_t experts = o["experts"], k_each = o["k"];
  Kernel k("named_source");
  const Ref scores = k.input("scores", Elem::kF32, {kRows, kLanes});
  const Ref slabs = k.input("slabs", Elem::kF32, {experts, kRows, kLanes});
  const Ref y = k.output("y", Elem::kF32, {kRows, kRows, kLanes});  // per row, the sum of its slabs
  const Source chosen{"expert", 0, experts - 1, {kRows, k_each}, /*distinct=*/true};

  k.scope([&] {
    const Ref score = k.vmem(Elem::kF32, {kRows, kLanes});
    const Ref slab = k.vmem(Elem::kF32, {kRows, kRows, kLanes});
    const Ref sum = k.vmem(Elem::kF32, {kRows, kRows, kLanes});
    const Sem done = k.dma_sem();
    const Sems arrived = k.dma_sems(kRows);
    k.copy(scores, score, done).wait();
    sum.store(zeros(k, Elem::kF32, sum.shape()));
    const Vec lane = iota(k, {kRows, kLanes}, 1);
    const Vec lanes = cast(lane, Elem::kF32);
    k.loop(0, k_each, where(lane < experts, score.load(), kStruckOut), [&](Scalar j, Vec left) {
      // The first lane of the largest score, of every row at once (lesson 12).
      const Vec best = min_over(where(left == max_over(left, 1), lanes, -kStruckOut), 1);
      const Vec first = cast(best, Elem::kI32);
      std::vector<Copy> copies;
      for (int64_t r = 0; r < kRows; ++r) {
        const Scalar id = source(chosen, extract(first, {r, 0}), {r, j});
        copies.push_back(k.copy(slabs.at(id), slab.at(r), arrived.at(r)));
      }
      for (const Copy& c : copies) c.wait();
      sum.store(sum.load() + slab.load());
      return where(lane == first, kStruckOut, left);
    });
    k.copy(sum, y, done).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array scores = normal(rng, Elem::kF32, {kRows, kLanes});
  Array slabs = normal(rng, Elem::kF32, {o["experts"], kRows, kLanes});
  return {{std::move(scores), std::move(slabs)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  Array y(Elem::kF32, {kRows, kRows, kLanes});
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<int64_t> order(static_cast<size_t>(o["experts"]));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, [&](int64_t a, int64_t b) { return in[0][0].at({r, a}) > in[0][0].at({r, b}); });
    for (int64_t j = 0; j < o["k"]; ++j)
      for (int64_t s = 0; s < kRows; ++s)
        for (int64_t l = 0; l < kLanes; ++l)
          y.at({r, s, l}) = rounded(
              Elem::kF32, y.at({r, s, l}) + in[0][1].at({order[static_cast<size_t>(j)], s, l}));
  }
  return {{y}};
}

}  // namespace

Lesson lesson_18_named_source() {
  return {.name = "18_named_source",
          .title = "Scalars that come from data, with a name and a promise",
          .options = {{"experts", 64, "experts", 8, 128}, {"k", 2, "experts of a row", 1, 8}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // sums in the order of the choices: exact
}

}  // namespace gridless::kernels
