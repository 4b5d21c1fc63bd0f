// Lesson 17: state that stays.
//
// A decode step reads and writes state that outlives it: the KV cache, a recurrence. `inout` makes
// an operand and a result of one buffer: the caller hands the state in and gets it back changed,
// and what the kernel does not touch stays as it was, without being copied.
//
// Here each row of a batch updates the state of the sequence that a table names: state = decay *
// state
// + x. A row that is not active (slot -1) must write nothing, and so it must not read either.
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kSlots = 8, kTile = 8, kColumns = 256;
constexpr double kDecay = 0.75;

Built build(const Options& o) {
  const int64_t rows = o["rows"];
  Kernel k("in_place_state");
  const Ref slot = k.input("slot", Elem::kI32, {rows}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {rows, kTile, kColumns});
  const Ref state = k.inout("state", Elem::kF32, {kSlots, kTile, kColumns});

  k.scope([&] {
    const Ref old = k.vmem(Elem::kF32, {kTile, kColumns});
    const Ref update = k.vmem(Elem::kF32, {kTile, kColumns});
    const Sems done = k.dma_sems(2);
    k.loop(0, rows, [&](Scalar r) {
      const Scalar s = slot.get({r});
      k.if_(s >= 0, [&] {
        const Copy a = k.copy(state.at(s), old, done.at(0));
        const Copy b = k.copy(x.at(r), update, done.at(1));
        a.wait();
        b.wait();
        old.store(old.load() * kDecay + update.load());
        // Waited for here, not later: the next row may be of the same sequence and read this again.
        k.copy(old, state.at(s), done.at(0)).wait();
      });
    });
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array slot = whole(rng, Elem::kI32, {o["rows"]}, -1, kSlots - 1);
  Array x = normal(rng, Elem::kF32, {o["rows"], kTile, kColumns});
  Array state = normal(rng, Elem::kF32, {kSlots, kTile, kColumns});
  return {{std::move(slot), std::move(x), std::move(state)}};
}

PerCore reference(const Options& o, const PerCore& in) {
  Array state = in[0][2];
  for (int64_t r = 0; r < o["rows"]; ++r) {
    const auto s = static_cast<int64_t>(in[0][0].at({r}));
    if (s < 0) continue;
    for (int64_t t = 0; t < kTile; ++t)
      for (int64_t c = 0; c < kColumns; ++c) {
        double& v = state.at({s, t, c});
        v = rounded(Elem::kF32, rounded(Elem::kF32, v * kDecay) + in[0][1].at({r, t, c}));
      }
  }
  return {{state}};
}

}  // namespace

Lesson lesson_17_in_place_state() {
  return {.name = "17_in_place_state",
          .title = "State that is updated in place, and rows that are not active",
          .options = {{"rows", 12, "rows of the batch", 1, 4096}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // two roundings, made alike: exact
}

}  // namespace gridless::kernels
