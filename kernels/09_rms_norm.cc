// Lesson 9: where to round.
//
// RMS norm of bf16 rows: y = x / sqrt(mean(x^2) + eps) * weight. Squares of bf16 values need 16
// bits of mantissa and their sum more, so the arithmetic is f32: cast() up once after the load,
// cast() down once before the store. A cast to bf16 rounds to nearest even; nothing else on the way
// loses bits on purpose. Each rounding is a visible word in the program.
//
// Rows may be padded to whole tiles: `width` columns of the row are real, and the mean divides by
// those. Padding is zero, so the sum does not see it.
#include <cmath>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 16, kColumns = 1024;
constexpr double kEpsilon = 1e-5;

Built build(const Options& o) {
  Kernel k("rms_norm");
  const Ref x = k.input("x", Elem::kBf16, {kRows, kColumns});
  const Ref weight = k.input("weight", Elem::kF32, {1, kColumns});
  const Ref y = k.output("y", Elem::kBf16, {kRows, kColumns});

  k.scope([&] {
    const Ref rows = k.vmem(Elem::kBf16, {kRows, kColumns});
    const Ref scale = k.vmem(Elem::kF32, {1, kColumns});
    const Sems done = k.dma_sems(2);
    const Copy copy_x = k.copy(x, rows, done.at(0)), copy_w = k.copy(weight, scale, done.at(1));
    copy_x.wait();
    copy_w.wait();

    const Vec v = cast(rows.load(), Elem::kF32);
    const Vec mean_square = sum(v * v, 1) * (1.0 / static_cast<double>(o["width"]));
    const Vec normed = v * rsqrt(mean_square + kEpsilon) * scale.load();
    rows.store(cast(normed, Elem::kBf16));

    k.copy(rows, y, done.at(0)).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array x = normal(rng, Elem::kBf16, {kRows, kColumns}),
        weight = normal(rng, Elem::kF32, {1, kColumns});
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = o["width"]; c < kColumns; ++c) x.at({r, c}) = 0;
  return {{std::move(x), std::move(weight)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  const Array &x = in[0][0], &weight = in[0][1];
  Array y(Elem::kBf16, x.shape);
  for (int64_t r = 0; r < kRows; ++r) {
    double squares = 0;
    for (int64_t c = 0; c < kColumns; ++c) squares += x.at({r, c}) * x.at({r, c});
    const double factor = 1.0 / std::sqrt(squares / static_cast<double>(o["width"]) + kEpsilon);
    for (int64_t c = 0; c < kColumns; ++c) y.at({r, c}) = x.at({r, c}) * factor * weight.at({0, c});
  }
  return {{y}};
}

}  // namespace

Lesson lesson_09_rms_norm() {
  return {.name = "09_rms_norm",
          .title = "bf16 in memory, f32 in between: visible rounding",
          .options = {{"width", 1000, "columns that are not padding", 1, kColumns}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // One rounding to bf16, half a unit in the last of 8 bits: 2^-8 = 0.0039; f32 adds 1e-6.
          .absolute = 1e-12,
          .relative = 0.00392};
}

}  // namespace gridless::kernels
