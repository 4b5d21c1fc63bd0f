// Several cores: who may write where and when, and who waits for whom.
#include "tests/race/race_case.h"

namespace gridless::lang {
namespace {

constexpr int64_t kRows = 8, kColumns = 128;

// Every core sends its part to the next one, `rounds` times into one slot.
void send_to_one_slot(Kernel& k, bool credits, int& line) {
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {2, kRows, kColumns});
  k.scope([&] {
    const Ref mine = k.vmem(Elem::kF32, {kRows, kColumns}),
              slot = k.vmem(Elem::kF32, {kRows, kColumns});
    const Ref got = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem(), sent = k.dma_sem(), received = k.dma_sem(), free = k.sem();
    const Scalar right = (k.core() + 1) % k.cores(), left = (k.core() + k.cores() - 1) % k.cores();
    k.copy(x, mine, done).wait();
    k.barrier_all();
    k.loop(0, 2, [&](Scalar i) {
      if (credits) k.if_(i > 0, [&] { k.wait(free); });
      HERE const Copy c = k.copy_to(right, mine, slot, sent, received);
      k.wait_received(slot, received);
      got.store(slot.load());
      if (credits) k.if_(i < 1, [&] { k.signal(free, 1, left); });
      c.wait_sent();
      k.copy(got, y.at(i), done).wait();
    });
  });
}

// Two slots, one receive semaphore: right only if copies land in the order of their starts.
void one_receive_semaphore(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {2, kRows, kColumns});
  k.scope([&] {
    const Ref mine = k.vmem(Elem::kF32, {kRows, kColumns}),
              slots = k.vmem(Elem::kF32, {2, kRows, kColumns});
    const Ref got = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    const Sems sent = k.dma_sems(2), received = k.dma_sems(2);
    const Scalar peer = (k.core() + 1) % k.cores();
    k.copy(x, mine, done).wait();
    k.barrier_all();
    const Copy c0 = k.copy_to(peer, mine, slots.at(0), sent.at(0), received.at(0));
    const Copy c1 = k.copy_to(peer, mine, slots.at(1), sent.at(1), received.at(fixed ? 1 : 0));
    k.wait_received(slots.at(0), received.at(0));
    HERE got.store(slots.at(0).load());
    k.copy(got, y.at(0), done).wait();
    k.wait_received(slots.at(1), received.at(fixed ? 1 : 0));
    got.store(slots.at(1).load());
    k.copy(got, y.at(1), done).wait();
    c0.wait_sent();
    c1.wait_sent();
  });
}

// The peer may not have entered the kernel yet.
void no_entry_barrier(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref mine = k.vmem(Elem::kF32, {kRows, kColumns}),
              slot = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem(), sent = k.dma_sem(), received = k.dma_sem();
    k.copy(x, mine, done).wait();
    if (fixed) k.barrier_all();
    HERE const Copy c = k.copy_to((k.core() + 1) % k.cores(), mine, slot, sent, received);
    k.wait_received(slot, received);
    c.wait_sent();
    k.copy(slot, y, done).wait();
  });
}

// A barrier with both neighbours only: the left one's signal of the next launch may stand in for
// the right one's of this launch. Shows only when a second launch follows.
void barrier_of_neighbours(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref mine = k.vmem(Elem::kF32, {kRows, kColumns}),
              slot = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem(), sent = k.dma_sem(), received = k.dma_sem();
    const Scalar right = (k.core() + 1) % k.cores(), left = (k.core() + k.cores() - 1) % k.cores();
    k.copy(x, mine, done).wait();
    if (fixed) {
      k.barrier_all();
    } else {
      const Sem barrier = k.barrier_sem();
      k.signal(barrier, 1, left);
      k.signal(barrier, 1, right);
      k.wait(barrier, 2);
    }
    HERE const Copy c = k.copy_to(right, mine, slot, sent, received);
    k.wait_received(slot, received);
    c.wait_sent();
    k.copy(slot, y, done).wait();
  });
}

// Everybody waits before signalling.
void wait_before_signal(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem(), turn = k.sem();
    const Scalar peer = (k.core() + 1) % k.cores();
    k.barrier_all();
    if (fixed) k.signal(turn, 1, peer);
    HERE k.wait(turn);
    if (!fixed) k.signal(turn, 1, peer);
    a.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    k.copy(a, y, done).wait();
  });
}

// A loop as long as a count that other cores are still changing.
void reads_a_count(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem(), turn = k.sem();
    a.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    k.barrier_all();
    k.signal(turn, 1, (k.core() + 1) % k.cores());
    if (fixed) {
      k.wait(turn);
      k.signal(turn);
    }
    HERE const Scalar n = k.read(turn);
    k.loop(0, n, [&](Scalar) { a.store(a.load() + 1.0); });
    k.wait(turn);
    k.copy(a, y, done).wait();
  });
}

const RaceCase kCases[] = {
    {"SendToOneSlot", "race", 2, send_to_one_slot, {}, false, {"order_assumption"}},
    {"OneReceiveSemaphore", "order_assumption", 2, one_receive_semaphore, {}, true},
    {"NoEntryBarrier", "missing_barrier", 2, no_entry_barrier, {}, false, {"race"}},
    {"BarrierOfNeighbours", "missing_barrier", 5, barrier_of_neighbours, {}, false, {"race"}},
    {"WaitBeforeSignal", "deadlock", 3, wait_before_signal},
    {"ReadsACount", "timing_dependent_read", 2, reads_a_count},
};
RACE_SUITE(RaceOfCores, kCases);

}  // namespace
}  // namespace gridless::lang
