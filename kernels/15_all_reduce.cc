// Lesson 15: an all-reduce that gives every core the same bits.
//
// Tensor parallelism leaves each core with a partial sum of a small vector, and all need the total.
// For a few kilobytes the fastest exchange is the plainest: everybody sends its part to everybody,
// one message time in all. Part s lands in slot s on every core, counted by semaphore s, so nothing
// depends on the order of arrival; and all cores add in the order of the slots, so all get the same
// rounding. That matters: a residual that differs in its last bit between cores drifts apart.
//
// The sends are started together and waited for at the end: `sent` only guards the source slot.
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kRows = 8, kColumns = 512;

Built build(const Options& o) {
  const int cores = static_cast<int>(o["cores"]);
  Kernel k("all_reduce", cores);
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});

  k.scope([&] {
    const Ref part = k.vmem(Elem::kF32, {cores, kRows, kColumns});
    const Ref total = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    const Sems sent = k.dma_sems(cores), received = k.dma_sems(cores);
    const Scalar me = k.core();
    k.copy(x, part.at(me), done).wait();
    k.barrier_all();

    std::vector<Copy> sends;
    for (int d = 1; d < cores; ++d) {
      const Scalar peer = (me + d) % cores;
      sends.push_back(k.copy_to(peer, part.at(me), part.at(me), sent.at(d), received.at(me)));
    }
    for (int d = 1; d < cores; ++d) {
      const Scalar from = (me + d) % cores;
      k.wait_received(part.at(from), received.at(from));
    }
    Vec sum = part.at(0).load();
    for (int s = 1; s < cores; ++s) sum = sum + part.at(s).load();
    total.store(sum);
    for (const Copy& c : sends) c.wait_sent();
    k.copy(total, y, done).wait();
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
  Array total(Elem::kF32, {kRows, kColumns});
  for (size_t i = 0; i < total.values.size(); ++i) {
    total.values[i] = in[0][0].values[i];
    for (size_t c = 1; c < in.size(); ++c) {
      total.values[i] = rounded(Elem::kF32, total.values[i] + in[c][0].values[i]);
    }
  }
  return PerCore(static_cast<size_t>(o["cores"]), {total});
}

}  // namespace

Lesson lesson_15_all_reduce() {
  return {.name = "15_all_reduce",
          .title = "Everybody sends to everybody; the same sum to the bit",
          .options = {{"cores", 2, "cores", 1, 32}},
          .build = build,
          .inputs = inputs,
          .reference = reference};  // the order of the additions is part of the contract: exact
}

}  // namespace gridless::kernels
