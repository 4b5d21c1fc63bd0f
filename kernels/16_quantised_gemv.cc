// Lesson 16: quantised weights on a matrix unit that knows nothing of scales.
//
// W is int8 with one f32 scale per 32 rows of K and column. Multiplying every weight by its scale
// before the product costs a vector operation per weight. The scales can wait until after the
// product if the product keeps blocks of 32 apart, and this trick makes it do so: of the 256 rows
// of K that one pass takes, make 8 copies of x, the b-th with all but block b set to zero. Stacked,
// they are a [8 * rows, 256] left side; row (b, r) of the result is the sum over block b alone,
// exact in f32 up to its additions. Eight rows cost the matrix unit the same as 64, so the copies
// are free, and the scales cost one multiplication per (block, column) and row instead of one per
// weight.
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kColumns = 256, kBlock = 32, kPass = 256, kBlocks = kPass / kBlock;

Built build(const Options& o) {
  const int64_t size_k = o["k"];
  Kernel k("quantised_gemv");
  const Ref x = k.input("x", Elem::kBf16, {kRows, size_k});
  const Ref codes = k.input("codes", Elem::kI8, {size_k, kColumns});
  const Ref scales = k.input("scales", Elem::kF32, {size_k / kBlock, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});

  k.scope([&] {
    const Ref vx = k.vmem(Elem::kBf16, {kRows, size_k});
    const Ref vcodes = k.vmem(Elem::kI8, {size_k, kColumns});
    const Ref vscales = k.vmem(Elem::kF32, {size_k / kBlock, kColumns});
    const Ref vy = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sems done = k.dma_sems(3);
    const Copy copies[] = {k.copy(x, vx, done.at(0)), k.copy(codes, vcodes, done.at(1)),
                           k.copy(scales, vscales, done.at(2))};
    for (const Copy& c : copies) c.wait();

    // Lane l belongs to block l / 32, and copy b of x (rows 8b to 8b + 7) keeps block b.
    const Shape stacked = {kBlocks * kRows, kPass};
    const Vec block_of_lane = shift_right_logical(iota(k, stacked, 1), 5);
    const Vec copy_of_row = shift_right_logical(iota(k, stacked, 0), 3);
    const Vec keep = block_of_lane == copy_of_row;

    const Vec total =
        k.loop(0, size_k / kPass, zeros(k, Elem::kF32, {kRows, kColumns}), [&](Scalar i, Vec acc) {
          const Vec rows = cast(vx.load({0, i * kPass}, {kRows, kPass}), Elem::kF32);
          const Vec copied = concat(std::vector<Vec>(kBlocks, rows), 0);
          const Vec diagonal = cast(where(keep, copied, 0.0), Elem::kBf16);
          // An int8 code is exact in bf16.
          const Vec weights =
              cast(cast(vcodes.load({i * kPass, 0}, {kPass, kColumns}), Elem::kF32), Elem::kBf16);
          const Vec sums =
              dot(diagonal, weights, zeros(k, Elem::kF32, {kBlocks * kRows, kColumns}));
          const Vec scale = vscales.load({i * kBlocks, 0}, {kBlocks, kColumns});
          Vec out = acc;
          for (int64_t b = 0; b < kBlocks; ++b) {
            out = out + slice(sums, {b * kRows, 0}, {kRows, kColumns}) *
                            slice(scale, {b, 0}, {1, kColumns});
          }
          return out;
        });
    vy.store(total);
    k.copy(vy, y, done.at(0)).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array x = normal(rng, Elem::kBf16, {kRows, o["k"]});
  Array codes = whole(rng, Elem::kI8, {o["k"], kColumns}, -127, 127);
  Array scales = normal(rng, Elem::kF32, {o["k"] / kBlock, kColumns}, 0.01);
  return {{std::move(x), std::move(codes), std::move(scales)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  const Array &x = in[0][0], &codes = in[0][1], &scales = in[0][2];
  Array y(Elem::kF32, {kRows, kColumns});
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t z = 0; z < o["k"]; ++z)
      for (int64_t c = 0; c < kColumns; ++c)
        y.at({r, c}) += x.at({r, z}) * codes.at({z, c}) * scales.at({z / kBlock, c});
  return {{y}};
}

}  // namespace

Lesson lesson_16_quantised_gemv() {
  return {.name = "16_quantised_gemv",
          .title = "int8 weights, scales after the product: the block diagonal",
          .options = {{"k", 1024, "inner dimension", 256, 8192, 256}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // Terms are of size 0.7 and at most 8192 of them are added in f32: 8192 * 2^-24 * 0.7 *
          // sqrt(8192).
          .absolute = 0.03,
          .relative = 1e-5};
}

}  // namespace gridless::kernels
