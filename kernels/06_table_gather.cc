// Lesson 6: SMEM holds the numbers that steer the program.
//
// y[i] = x[table[i]] * scale[i]: block i of the output is a block of x that a table chooses, times
// a number that another table holds. This is how expert ids, page tables and row positions reach a
// kernel: small i32 (or f32) arrays in SMEM, read one element at a time into Scalars. A Scalar may
// index HBM, bound a loop or, broadcast over a vector, take part in arithmetic.
//
// The order is known before any data arrives, so the copies of all chosen blocks could be in flight
// together; lesson 7 does that.
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kColumns = 256, kBlocks = 32;

Built build(const Options& o) {
  const int64_t n = o["picks"];
  Kernel k("table_gather");
  const Ref table = k.input("table", Elem::kI32, {n}, Space::kSmem);
  const Ref scale = k.input("scale", Elem::kF32, {n}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {kBlocks, kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {n, kRows, kColumns});

  k.scope([&] {
    const Ref block = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    k.loop(0, n, [&](Scalar i) {
      k.copy(x.at(table.get({i})), block, done).wait();
      block.store(block.load() * scale.get({i}));
      k.copy(block, y.at(i), done).wait();
    });
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array table = whole(rng, Elem::kI32, {o["picks"]}, 0, kBlocks - 1);
  Array scale = normal(rng, Elem::kF32, {o["picks"]});
  Array x = normal(rng, Elem::kF32, {kBlocks, kRows, kColumns});
  return {{std::move(table), std::move(scale), std::move(x)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  const Array &table = in[0][0], &scale = in[0][1], &x = in[0][2];
  Array y(Elem::kF32, {o["picks"], kRows, kColumns});
  for (int64_t i = 0; i < o["picks"]; ++i)
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t c = 0; c < kColumns; ++c) {
        const auto from = static_cast<int64_t>(table.at({i}));
        y.at({i, r, c}) = rounded(Elem::kF32, x.at({from, r, c}) * scale.at({i}));
      }
  return {{y}};
}

}  // namespace

Lesson lesson_06_table_gather() {
  return {.name = "06_table_gather",
          .title = "Tables in SMEM choose what is read from HBM",
          .options = {{"picks", 6, "blocks to gather", 1, 4096}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // one correctly rounded product: exact
}

}  // namespace gridless::kernels
