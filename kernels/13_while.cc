// Lesson 13: a decision that depends on the data.
//
// Find the first tile of a long array that holds a value above a threshold, and stop reading there.
// `extract` takes one element of a vector to the scalar unit (about 50 cycles: rarely, then), a
// comparison of Scalars is a condition, and `while_` runs as long as its carried value says so.
//
// `a && b` on Scalars evaluates both sides - it is an operation, not control flow. So "i < n and
// tile i does not match" cannot be one condition: reading tile n would already be the mistake. The
// body marks a match by jumping past the end instead.
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kColumns = 128;
constexpr int64_t kFound = 1 << 24;  // more tiles than there can be

Built build(const Options& o) {
  const int64_t tiles = o["tiles"];
  Kernel k("find_tile");
  const Ref threshold = k.input("threshold", Elem::kF32, {1}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {tiles, kRows, kColumns});
  const Ref y =
      k.output("y", Elem::kI32, {kRows, kColumns});  // the tile's number everywhere, or -1

  k.scope([&] {
    const Ref tile = k.vmem(Elem::kF32, {kRows, kColumns});
    const Ref answer = k.vmem(Elem::kI32, {kRows, kColumns});
    const Sem done = k.dma_sem();

    const Scalar end = k.while_(
        0, [&](Scalar i) { return i < tiles; },
        [&](Scalar i) {
          k.copy(x.at(i), tile, done).wait();
          const Scalar top = extract(max_over(max_over(tile.load(), 1), 0), {0, 0});
          return where(top > threshold.get({0}), i + kFound, i + 1);
        });
    const Scalar number = where(end >= kFound, end - kFound, -1);
    answer.store(broadcast(number, {kRows, kColumns}));
    k.copy(answer, y, done).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array threshold(Elem::kF32, {1});
  threshold.at({0}) = 4.0;  // one number in 30,000: a tile in 30
  Array x = normal(rng, Elem::kF32, {o["tiles"], kRows, kColumns});
  return {{std::move(threshold), std::move(x)}};
}

PerCore reference(const Options&, const PerCore& in) {
  const double threshold = in[0][0].at({0});
  double found = -1;
  for (int64_t i = in[0][1].size() - 1; i >= 0; --i) {
    if (in[0][1].values[static_cast<size_t>(i)] > threshold) {
      found = static_cast<double>(i / (kRows * kColumns));
    }
  }
  Array y(Elem::kI32, {kRows, kColumns});
  for (double& v : y.values) v = found;
  return {{y}};
}

}  // namespace

Lesson lesson_13_while() {
  return {.name = "13_while",
          .title = "From vector to scalar, and a loop that stops early",
          .options = {{"tiles", 100, "tiles of 8x128 numbers", 1, 1 << 20}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // comparisons only: exact
}

}  // namespace gridless::kernels
