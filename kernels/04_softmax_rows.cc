// Lesson 4: reductions and broadcasting.
//
// Softmax of every row. A reduction over axis 1 (the lanes) of an [R, C] vector gives [R, 1], and a
// dimension of 1 stretches again in arithmetic, as in numpy: `x - max_over(x, 1)`.
//
// Lanes are expensive: a sum over 128 lanes costs about 140 cycles before the first result appears,
// one over rows costs three additions. Where you may choose, put what you reduce on the rows; where
// you may not, reduce many rows in one go, as here: the wait is paid once for all of them.
#include <algorithm>
#include <cmath>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 16;

Built build(const Options& o) {
  const Shape shape = {kRows, o["columns"]};
  Kernel k("softmax_rows");
  const Ref x = k.input("x", Elem::kF32, shape);
  const Ref y = k.output("y", Elem::kF32, shape);

  k.scope([&] {
    const Ref rows = k.vmem(Elem::kF32, shape);
    const Sem done = k.dma_sem();
    k.copy(x, rows, done).wait();

    const Vec v = rows.load();
    // Without the maximum exp() overflows for logits above 88.
    const Vec e = exp(v - max_over(v, 1));
    // One division per row, not per element.
    rows.store(e * (1.0 / sum(e, 1)));

    k.copy(rows, y, done).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  return {{normal(rng, Elem::kF32, {kRows, o["columns"]}, 30.0)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  const int64_t n = o["columns"];
  Array y(Elem::kF32, in[0][0].shape);
  for (int64_t r = 0; r < kRows; ++r) {
    double top = -1e300, total = 0;
    for (int64_t c = 0; c < n; ++c) top = std::max(top, in[0][0].at({r, c}));
    for (int64_t c = 0; c < n; ++c) total += std::exp(in[0][0].at({r, c}) - top);
    for (int64_t c = 0; c < n; ++c) y.at({r, c}) = std::exp(in[0][0].at({r, c}) - top) / total;
  }
  return {{y}};
}

}  // namespace

Lesson lesson_04_softmax_rows() {
  return {.name = "04_softmax_rows",
          .title = "Reductions keep a dimension of 1, and it stretches",
          .options = {{"columns", 512, "columns (lanes)", 128, 16384, 128}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // v - max is rounded to 2^-24 of up to 200, and exp passes that on: 200 * 2^-24 = 1.2e-5.
          .absolute = 1e-30,
          .relative = 3e-5};
}

}  // namespace gridless::kernels
