// Lesson 7: two slots, so that the next tile arrives while this one is worked on.
//
// Lesson 3 waits for every tile: the copy engine idles while the vector unit works, and the other
// way round. With two slots the loop starts tile i+1 into one slot, then waits for tile i in the
// other. Results leave through two slots of their own, so a write has a whole iteration to finish.
//
// The copy that iteration i waits for was started by iteration i-1: there is no Copy object to
// call. Kernel::wait names the same bytes and semaphore instead. The rule stays: every start, one
// wait.
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kTileRows = 16, kColumns = 512;

Built build(const Options& o) {
  const int64_t tiles = o["tiles"];
  Kernel k("double_buffer");
  const Ref x = k.input("x", Elem::kF32, {tiles * kTileRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {tiles * kTileRows, kColumns});

  k.scope([&] {
    const Ref in = k.vmem(Elem::kF32, {2, kTileRows, kColumns});
    const Ref out = k.vmem(Elem::kF32, {2, kTileRows, kColumns});
    const Sems arrived = k.dma_sems(2), left = k.dma_sems(2);
    const auto source = [&](Scalar i) { return x.rows(i * kTileRows, kTileRows); };
    const auto target = [&](Scalar i) { return y.rows(i * kTileRows, kTileRows); };
    const auto start = [&](Scalar i) { k.copy(source(i), in.at(i % 2), arrived.at(i % 2)); };
    const auto wait_left = [&](Scalar i) { k.wait(out.at(i % 2), target(i), left.at(i % 2)); };

    start(0);
    k.loop(0, tiles, [&](Scalar i) {
      const Scalar slot = i % 2;
      // The other slot is free: the iteration before this one has read it.
      k.if_(i + 1 < tiles, [&] { start(i + 1); });
      k.wait(source(i), in.at(slot), arrived.at(slot));
      // The result of two iterations ago must have left the slot that is written next.
      k.if_(i >= 2, [&] { wait_left(i - 2); });
      const Vec v = in.at(slot).load();
      out.at(slot).store(v * v + 1.0);
      k.copy(out.at(slot), target(i), left.at(slot));
    });
    // What the loop started and nobody has waited for yet.
    for (int64_t i = tiles > 1 ? tiles - 2 : 0; i < tiles; ++i) wait_left(i);
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  return {{normal(rng, Elem::kF32, {o["tiles"] * kTileRows, kColumns})}};
}

PerCore reference(const Options&, const PerCore& in) {
  Array y(Elem::kF32, in[0][0].shape);
  for (size_t i = 0; i < y.values.size(); ++i) {
    const double x = in[0][0].values[i];
    y.values[i] = rounded(Elem::kF32, rounded(Elem::kF32, x * x) + 1.0);
  }
  return {{y}};
}

}  // namespace

Lesson lesson_07_double_buffer() {
  return {.name = "07_double_buffer",
          .title = "Two slots: copies and work overlap",
          .options = {{"tiles", 7, "tiles of 16x512 numbers", 1, 1 << 20}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // two roundings, made alike: exact
}

}  // namespace gridless::kernels
