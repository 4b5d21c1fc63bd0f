// Lesson 19: the loop of a decode step, at any size.
//
// What a whole step is made of, without its model: layers that stream their weights through a ring
// of slots, the next chunks always on the way, and two sums over all cores per layer (lessons 8 and
// 15). Small, it is checked and run with values like any other lesson. At the size of the largest
// models - 32 cores, 90 layers, hundreds of gigabytes of weights, a million events - it is checked
// without them:
//
//   gridless check 'kernel:19_layers?layers=90&chunks=32&tiles=512' --cores 32
#include "gridless/blocks/collectives/collective.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kLanes = 128, kSlots = 4;
constexpr int kExchanges = 2;

Built build(const Options& o) {
  const int64_t chunks = o["chunks"], tiles = o["tiles"], total = o["layers"] * chunks;
  Kernel k("layers", static_cast<int>(o["cores"]));
  const Ref weights = k.input("weights", Elem::kF32, {total, tiles, kRows, kLanes});
  const Ref x_in = k.input("x", Elem::kF32, {1, kRows, kLanes});
  const Ref y = k.output("y", Elem::kF32, {1, kRows, kLanes});
  k.barrier_all();
  k.scope([&] {
    blocks::Collective cores(k, {.group = {k.cores()}, .part = {1, kRows, kLanes}});
    const Ref ring = k.vmem(Elem::kF32, {kSlots, tiles, kRows, kLanes});
    const Ref x = k.vmem(Elem::kF32, {1, kRows, kLanes});
    const Ref part = k.vmem(Elem::kF32, {1, kRows, kLanes});
    const Sems arrived = k.dma_sems(kSlots);
    const Sem done = k.dma_sem();
    const auto start = [&](Scalar g) {
      k.copy(weights.at(g), ring.at(g % kSlots), arrived.at(g % kSlots));
    };
    for (int64_t g = 0; g < std::min(kSlots - 1, total); ++g) start(g);
    k.copy(x_in, x, done).wait();

    k.loop(0, o["layers"], [&](Scalar layer) {
      for (int e = 0; e < kExchanges; ++e) {
        // Half of the layer's chunks before each sum.
        const int64_t from = e * chunks / kExchanges, to = (e + 1) * chunks / kExchanges;
        part.store(zeros(k, Elem::kF32, part.shape()));
        k.loop(from, to, [&](Scalar c) {
          const Scalar g = layer * chunks + c, slot = g % kSlots, next = g + (kSlots - 1);
          k.wait(weights.at(g), ring.at(slot), arrived.at(slot));
          k.if_(next < total, [&] { start(next); });
          part.store(part.load() + x.load() * sum(ring.at(slot).load(), 0));
        });
        cores.add_sum(e, part, x);
      }
    });
    k.copy(x, y, done).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  const Array x = normal(rng, Elem::kF32, {1, kRows, kLanes});
  PerCore all;
  for (int64_t c = 0; c < o["cores"]; ++c)
    all.push_back(
        {normal(rng, Elem::kF32, {o["layers"] * o["chunks"], o["tiles"], kRows, kLanes}, 0.02), x});
  return all;
}

PerCore reference(const Options& o, const PerCore& in) {
  const int64_t chunks = o["chunks"];
  Array x = in[0][1];
  for (int64_t layer = 0; layer < o["layers"]; ++layer)
    for (int64_t e = 0; e < kExchanges; ++e)
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t l = 0; l < kLanes; ++l) {
          double factor = 1;
          for (const std::vector<Array>& core : in)
            for (int64_t c = e * chunks / kExchanges; c < (e + 1) * chunks / kExchanges; ++c)
              for (int64_t t = 0; t < o["tiles"]; ++t)
                factor += core[0].at({layer * chunks + c, t, r, l});
          x.at({0, r, l}) *= factor;
        }
  return PerCore(static_cast<size_t>(o["cores"]), {x});
}

}  // namespace

Lesson lesson_19_layers() {
  return {.name = "19_layers",
          .title = "The loop of a decode step: streams and sums, at any size",
          .options = {{"cores", 2, "cores", 1, 64},
                      {"layers", 3, "layers", 1, 128},
                      {"chunks", 4, "chunks of weights per layer", 2, 256},
                      {"tiles", 1, "8x128 tiles per chunk", 1, 1024}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // Each of the few dozen additions rounds once, to 6e-8 of numbers near one.
          .absolute = 1e-5,
          .relative = 1e-5};
}

}  // namespace gridless::kernels
