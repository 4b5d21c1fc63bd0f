// Lesson 3: k.loop, and refs that depend on the loop counter.
//
// y = x * sigmoid(x) over an array that does not fit in VMEM, one tile of rows at a time. `k.loop`
// records one loop, whatever the trip count: compile time and code size stay those of one body, so
// loops are what a big program is made of. The counter is a Scalar, a number of the scalar unit
// that is known when the kernel runs.
//
// A slice of a ref is another window, computed from Scalars. In HBM and VMEM data lies in tiles of
// 8 rows by 128 lanes, and the copy engine moves whole tiles: `i * kTileRows` is visibly a multiple
// of 8. Where a start comes from somewhere else, Kernel::assume_multiple makes the promise.
#include <cmath>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kTileRows = 16, kColumns = 512;

Built build(const Options& o) {
  const int64_t tiles = o["tiles"];
  Kernel k("silu");
  const Ref x = k.input("x", Elem::kF32, {tiles * kTileRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {tiles * kTileRows, kColumns});

  k.scope([&] {
    const Ref tile = k.vmem(Elem::kF32, {kTileRows, kColumns});
    const Sem done = k.dma_sem();
    k.loop(0, tiles, [&](Scalar i) {
      const Scalar row = i * kTileRows;
      k.copy(x.rows(row, kTileRows), tile, done).wait();
      const Vec v = tile.load();
      tile.store(v * logistic(v));
      k.copy(tile, y.rows(row, kTileRows), done).wait();
    });
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  return {{normal(rng, Elem::kF32, {o["tiles"] * kTileRows, kColumns}, 2.0)}};
}

PerCore reference(const Options&, const PerCore& in) {
  Array y(Elem::kF32, in[0][0].shape);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double x = in[0][0].values[i];
    y.values[i] = x / (1.0 + std::exp(-x));
  }
  return {{y}};
}

}  // namespace

Lesson lesson_03_loop_and_slices() {
  return {.name = "03_loop_and_slices",
          .title = "A loop over tiles, and windows that move with it",
          .options = {{"tiles", 5, "tiles of 16x512 numbers", 1, 1 << 20}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // Four roundings of 2^-24 each and an exp of a few ulp.
          .absolute = 1e-12,
          .relative = 1e-6};
}

}  // namespace gridless::kernels
