// Small kernels that do on virtual cores what published measurements did on real ones. Recorded
// with the kernel language, timed by the same model as any other kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/time/predict.h"

namespace gridless::bench {

using namespace gridless::lang;  // NOLINT

inline constexpr int64_t kKi = 1024, kMi = 1024 * kKi;
// Words of 32 bits in rows of 128 lanes.
inline Shape words(int64_t bytes) { return {bytes / 512, 128}; }
inline Ref buffer(Kernel& k, int64_t bytes) { return k.vmem(Elem::kI32, words(bytes)); }

// The kernel's time on `slice` in nanoseconds, without its launch.
inline double kernel_ns(Kernel& k, int cores, const chips::Slice& slice,
                        const chips::TimeParameters& p) {
  k.set_vmem_limit(60 * kMi);
  auto program = k.finish();
  GRIDLESS_CHECK(program.has_value(), "{}", program ? "" : to_string(program.error()));
  const auto kernel = time::TimedKernel::create(program->module, program->call);
  GRIDLESS_CHECK(kernel.has_value(), "{}", kernel ? "" : to_string(kernel.error()));
  const auto prediction = kernel->predict(time::place(slice, cores), {}, {.parameters = p});
  GRIDLESS_CHECK(prediction.has_value(), "{}", prediction ? "" : to_string(prediction.error()));
  return prediction->kernel_ns;
}

inline const chips::Slice kChip{.shape = {1, 1, 1}};
inline const chips::Slice kHost{.shape = {2, 2, 1}};  // 4 chips, 8 cores

// One copy from HBM to HBM.
inline double hbm_copy(const chips::TimeParameters& p, int64_t bytes) {
  Kernel k("hbm_copy");
  const Ref x = k.input("x", Elem::kI32, words(bytes)), y = k.output("y", Elem::kI32, words(bytes));
  k.scope([&] { k.copy(x, y, k.dma_sem()).wait(); });
  return kernel_ns(k, 1, kChip, p);
}

// From core 0 to each of `peers`, all at once: until the last has its bytes.
inline double send(const chips::TimeParameters& p, const std::vector<int>& peers, int64_t bytes) {
  Kernel k("send", 8);
  k.scope([&] {
    const Ref from = buffer(k, bytes), to = buffer(k, bytes);
    const Sem sent = k.dma_sem(), arrived = k.dma_sem();
    const Scalar me = k.core();
    k.if_(me == 0, [&] {
      for (const int peer : peers) k.copy_to(peer, from, to, sent, arrived);
    });
    for (const int peer : peers) k.if_(me == peer, [&] { k.wait_received(to, arrived); });
  });
  return kernel_ns(k, 8, kHost, p);
}

// The phases of collectives on 8 cores; core 2c and 2c + 1 share a chip. Each call makes buffers
// and semaphores of its own, in the scope around it.
class Exchange {
 public:
  Exchange(Kernel& k, int cores) : k_(k), cores_(cores), me_(k.core()) {}

  // `bytes` from every core to every core d of `distances`, by exclusive or of the number.
  void all_to(const std::vector<int>& distances, int64_t bytes) {
    const Ref from = buffer(k_, bytes);
    const Ref to = k_.vmem(Elem::kI32, {cores_, bytes / 512, 128});
    const Sem sent = k_.dma_sem(), arrived = k_.dma_sem();
    for (const int d : distances) {
      const Scalar peer = other(d);
      k_.copy_to(peer, from, to.at(me_), sent, arrived);
    }
    for (size_t n = 0; n < distances.size(); ++n) k_.wait_received(to.at(0), arrived);
  }
  // The chip across first, then the neighbours, the sibling last. Chips follow each other round the
  // square, so the one across is two further.
  static std::vector<int> everybody() { return {5, 4, 7, 6, 3, 2, 1}; }
  static std::vector<int> other_chips() { return {4, 6, 2}; }
  // Adds `parts` arrays of `bytes` of f32, or of bf16 on the wire.
  void add(int64_t parts, int64_t bytes, bool bf16) {
    const Elem e = bf16 ? Elem::kBf16 : Elem::kF32;
    const int64_t columns = bytes / 8 / (bf16 ? 2 : 4);
    const Ref in = k_.vmem(e, {parts, 8, columns}), out = k_.vmem(e, {8, columns});
    Vec sum = cast(in.at(0).load(), Elem::kF32);
    for (int64_t n = 1; n < parts; ++n) sum = sum + cast(in.at(n).load(), Elem::kF32);
    out.store(cast(sum, e));
  }

 private:
  // me xor d, from the operations that the language has for scalars.
  Scalar other(int d) const {
    Scalar out = me_;
    for (int bit = 1; bit < cores_; bit *= 2)
      if (d & bit) out = where((me_ / bit) % 2 == 0, out + bit, out - bit);
    return out;
  }
  Kernel& k_;
  int cores_;
  Scalar me_;
};

inline double exchange(const chips::TimeParameters& p, const std::function<void(Exchange&)>& body) {
  Kernel k("exchange", 8);
  k.scope([&] {
    Exchange e(k, 8);
    body(e);
  });
  return kernel_ns(k, 8, kHost, p);
}

inline double all_gather(const chips::TimeParameters& p, int64_t bytes, bool by_chip) {
  return exchange(p, [&](Exchange& e) {
    if (!by_chip) return e.all_to(e.everybody(), bytes);
    e.all_to(e.other_chips(), bytes);
    e.all_to({1}, 4 * bytes);
  });
}

// `bytes` per core on the wire before they are divided among the cores.
inline void all_reduce_body(Exchange& e, int64_t bytes, bool bf16, bool by_chip) {
  if (!by_chip) {
    e.all_to(e.everybody(), bytes / 8);
    e.add(8, bytes / 8, bf16);
    e.all_to(e.everybody(), bytes / 8);
    return;
  }
  e.all_to({1}, bytes / 2);
  e.add(2, bytes / 2, bf16);
  e.all_to(e.other_chips(), bytes / 8);
  e.add(4, bytes / 8, bf16);
  e.all_to(e.other_chips(), bytes / 8);
  e.all_to({1}, bytes / 2);
}

inline double all_reduce(const chips::TimeParameters& p, int64_t bytes, bool bf16, bool by_chip) {
  return exchange(p, [&](Exchange& e) { all_reduce_body(e, bytes, bf16, by_chip); });
}

// Sixteen rows by a slot of weights; int8 goes into the matrix units as bf16.
inline Vec product(Kernel& k, Ref x, Ref slot) {
  Vec weights = slot.load();
  if (weights.elem() == Elem::kI8) weights = cast(weights, Elem::kBf16);
  return dot(x.load(), weights, zeros(k, Elem::kF32, {16, weights.dim(1)}));
}

// A ring of weights in HBM: `loads` of `bytes`, each waited for, multiplied and asked for again.
struct Stream {
  int64_t loads = 1, bytes = 2 * kMi;
  int slots = 12;
  Elem weights = Elem::kBf16;
  bool multiplies = true;  // 16 rows by each load, 512 columns wide
  bool from_hbm = true;    // else the loads are taken to be there already
  double warm_ns = 0;      // the ring fills before the clock starts
};

inline double stream(const chips::TimeParameters& p, const Stream& s) {
  Kernel k("stream");
  const int64_t columns = 512, bits = ir::bit_width(s.weights);
  const int64_t depth = s.bytes * 8 / bits / columns;
  const Ref image = k.input("image", s.weights, {s.loads, depth, columns});
  const Ref y = k.output("y", Elem::kF32, {16, columns});
  k.scope([&] {
    const Ref ring = k.vmem(s.weights, {s.slots, depth, columns});
    const Ref x = k.vmem(Elem::kBf16, {16, depth}), out = k.vmem(Elem::kF32, {16, columns});
    const Sems done = k.dma_sems(s.slots);
    const auto start = [&](Scalar load) {
      k.copy(image.at(load), ring.at(load % s.slots), done.at(load % s.slots));
    };
    if (s.from_hbm) k.loop(0, std::min<int64_t>(s.slots, s.loads), start);
    if (s.warm_ns > 0) k.delay(static_cast<int64_t>(s.warm_ns));
    k.loop(0, s.loads, [&](Scalar load) {
      const Ref slot = ring.at(load % s.slots);
      if (s.from_hbm) k.wait(image.at(0), slot, done.at(load % s.slots));
      if (s.multiplies) out.store(product(k, x, slot));
      if (s.from_hbm) k.if_(load + s.slots < s.loads, [&] { start(load + s.slots); });
    });
    k.copy(out, y, k.dma_sem()).wait();
  });
  return kernel_ns(k, 1, kChip, p) - s.warm_ns;
}

}  // namespace gridless::bench
