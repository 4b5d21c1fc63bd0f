// Lesson 14: several cores run one program and write into each other's memory.
//
// Every core has the same program and the same allocations at the same addresses; `core()` is the
// only thing that differs. copy_to names a buffer *here* and means the buffer of that name *there*.
// Nobody can read from a peer: data is sent.
//
// Tiles go round a ring, `hops` times. Three rules make it right:
//  1. Nobody writes to a peer that may not have entered the kernel yet: barrier_all() first.
//  2. A buffer that a peer writes must be free at that time. Two buffers alternate, and before core
//  c
//     sends again, its right neighbour says with a `credit` that the buffer it is about to receive
//     in has been sent on. (The first hop needs none: nothing is in use then.)
//  3. All semaphores end at zero: as many credits are given as are taken, so the last hop gives
//  none.
#include "gridless/lang/kernel.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kColumns = 256;

Built build(const Options& o) {
  const int cores = static_cast<int>(o["cores"]);
  const int64_t hops = o["hops"];
  Kernel k("shift", cores);
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});

  k.scope([&] {
    const Ref tile = k.vmem(Elem::kF32, {2, kRows, kColumns});
    const Sem done = k.dma_sem();
    const Sem sent = k.dma_sem(), received = k.dma_sem();
    const Sem credit = k.sem();
    k.copy(x, tile.at(0), done).wait();
    const Scalar right = (k.core() + 1) % cores, left = (k.core() + (cores - 1)) % cores;
    k.barrier_all();

    k.loop(0, hops, [&](Scalar hop) {
      const Ref mine = tile.at(hop % 2), next = tile.at((hop + 1) % 2);
      k.if_(hop > 0, [&] { k.wait(credit); });
      const Copy c = k.copy_to(right, mine, next, sent, received);
      c.wait_sent();  // my tile is on its way: its buffer may be written
      c.wait();       // the left neighbour's tile is here
      k.if_(hop + 1 < hops, [&] { k.signal(credit, 1, left); });
    });
    k.copy(tile.at(hops % 2), y, done).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  PerCore all;
  for (int64_t c = 0; c < o["cores"]; ++c)
    all.push_back({normal(rng, Elem::kF32, {kRows, kColumns})});
  return all;
}

PerCore reference(const Options& o, const PerCore& in) {
  PerCore out;
  const int64_t n = o["cores"];
  for (int64_t c = 0; c < n; ++c) {
    const int64_t from = ((c - o["hops"]) % n + n) % n;
    out.push_back({in[static_cast<size_t>(from)][0]});
  }
  return out;
}

}  // namespace

Lesson lesson_14_barrier_and_shift() {
  return {.name = "14_barrier_and_shift",
          .title = "Cores send to each other: barrier, credits, remote copies",
          .options = {{"cores", 2, "cores", 2, 32}, {"hops", 3, "steps round the ring", 1, 1000}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // bytes are moved: exact
}

}  // namespace gridless::kernels
