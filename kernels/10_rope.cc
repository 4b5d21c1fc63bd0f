// Lesson 10: moving data between lanes.
//
// Rotary position embedding: within a head of 128 lanes, lane i and lane i + 64 form a pair that is
// turned by the angle position * theta^(-i/64). The partner of every lane is one `roll` by 64 away,
// and the sign differs between the halves, which `iota` and `where` say: no shuffles, no indexing.
//
// Positions are in SMEM, one per row: rows may belong to different sequences. Each row of 32-bit
// numbers can be reached by itself, so a loop takes one row at a time. (bf16 rows share words in
// pairs and cannot: load 8 or 16 of them.)
#include <cmath>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kHead = 128, kHalf = kHead / 2;
constexpr double kTheta = 10000.0;

Built build(const Options& o) {
  const int64_t rows = o["rows"];
  Kernel k("rope");
  const Ref position = k.input("position", Elem::kI32, {rows}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {rows, kHead});
  const Ref y = k.output("y", Elem::kF32, {rows, kHead});

  k.scope([&] {
    const Ref buffer = k.vmem(Elem::kF32, {rows, kHead});
    const Sem done = k.dma_sem();
    k.copy(x, buffer, done).wait();

    // The same for all rows, so it stands before the loop: what a loop body makes, it makes each
    // time.
    const Vec lane = iota(k, {1, kHead}, 1);
    const Vec low = lane < kHalf;
    const Vec pair = cast(where(low, lane, lane - kHalf), Elem::kF32);
    const Vec frequency = exp(pair * (-std::log(kTheta) / kHalf));

    k.loop(0, rows, [&](Scalar r) {
      const Vec v = buffer.load({r, 0}, {1, kHead});
      const Vec angle = frequency * cast(position.get({r}), Elem::kF32);
      const Vec partner = roll(v, kHalf, 1);
      const Vec turned = v * cos(angle) + where(low, -partner, partner) * sin(angle);
      buffer.store(turned, {r, 0});
    });
    k.copy(buffer, y, done).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array position = whole(rng, Elem::kI32, {o["rows"]}, 0, 2000);
  Array x = normal(rng, Elem::kF32, {o["rows"], kHead});
  return {{std::move(position), std::move(x)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  const Array &position = in[0][0], &x = in[0][1];
  Array y(Elem::kF32, x.shape);
  for (int64_t r = 0; r < o["rows"]; ++r)
    for (int64_t i = 0; i < kHalf; ++i) {
      const double angle = position.at({r}) * std::pow(kTheta, -static_cast<double>(i) / kHalf);
      const double a = x.at({r, i}), b = x.at({r, i + kHalf});
      y.at({r, i}) = a * std::cos(angle) - b * std::sin(angle);
      y.at({r, i + kHalf}) = b * std::cos(angle) + a * std::sin(angle);
    }
  return {{y}};
}

}  // namespace

Lesson lesson_10_rope() {
  return {.name = "10_rope",
          .title = "roll, iota and where: data moves between lanes",
          .options = {{"rows", 8, "rows (tokens)", 8, 512, 8}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // The f32 frequency is off by an ulp or three and the angle goes up to 2000: its error,
          // and so that of sin and cos, is up to 2000 * 4 * 2^-24 = 4.8e-4, times values up to 5.
          .absolute = 2.4e-3,
          .relative = 0};
}

}  // namespace gridless::kernels
