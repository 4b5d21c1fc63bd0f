#include "tests/certificate/library/program_parts.h"

namespace gridless::certificate {

using lang::Copy;
using lang::Scalar;
using lang::Sems;

namespace {

struct Pattern {
  Kernel& k;
  const Memory& m;
  Random& random;
  Scalar peer(int by) { return (k.core() + by + k.cores()) % k.cores(); }

  // Blocks of x through one or two slots.
  void stream() {
    const int slots = 1 + random.below(2), rounds = 2 + random.below(2);
    const Sems in = k.dma_sems(2);
    const auto start = [&](Scalar i) {
      k.copy(m.x.at(i % kSlots), m.slots.at(i % slots), in.at(i % slots));
    };
    start(0);
    k.loop(0, rounds, [&](Scalar i) {
      if (slots > 1) k.if_(i + 1 < rounds, [&] { start(i + 1); });
      k.wait(m.slots.at(0), m.slots.at(0), in.at(i % slots));
      m.slots.at(2).store(m.slots.at(2).load() + m.slots.at(i % slots).load());
      if (slots == 1) k.if_(i + 1 < rounds, [&] { start(i + 1); });
    });
  }

  void exchange() {
    const Sem sent = k.dma_sem(), received = k.dma_sem();
    k.barrier_all();
    const Copy c = k.copy_to(peer(1), m.slots.at(0), m.slots.at(1), sent, received);
    k.wait_received(m.slots.at(1), received);
    m.slots.at(2).store(m.slots.at(1).load() + 1.0);
    c.wait_sent();
  }

  // A ring through one slot, freed by a credit.
  void credits() {
    const int rounds = 2;
    const Sem sent = k.dma_sem(), received = k.dma_sem(), free = k.sem();
    k.barrier_all();
    k.loop(0, rounds, [&](Scalar i) {
      k.if_(i > 0, [&] { k.wait(free); });
      const Copy c = k.copy_to(peer(1), m.slots.at(0), m.slots.at(1), sent, received);
      k.wait_received(m.slots.at(1), received);
      c.wait_sent();
      m.slots.at(0).store(m.slots.at(1).load());
      k.if_(i < rounds - 1, [&] { k.signal(free, 1, peer(-1)); });
    });
  }

  // Barriers one after another on one counter, then a remote write.
  void barriers() {
    const Sem count = k.sem(), sent = k.dma_sem(), received = k.dma_sem();
    k.barrier_all();
    k.loop(0, 1 + random.below(2), [&](Scalar) {
      for (int d = 1; d < k.cores(); ++d) k.signal(count, 1, peer(d));
      k.wait(count, k.cores() - 1);
    });
    const Copy c = k.copy_to(peer(1), m.slots.at(0), m.slots.at(1), sent, received);
    c.wait_sent();
    k.wait_received(m.slots.at(1), received);
  }

  // Core after core adds to what it got and passes it on.
  void token() {
    const Sem sent = k.dma_sem(), received = k.dma_sem();
    const bool shared = random.chance(30);
    k.barrier_all();
    k.if_(k.core() > 0, [&] { k.wait_received(m.slots.at(0), received); });
    m.slots.at(0).store(m.slots.at(0).load() + 1.0);
    k.if_(k.core() + 1 < k.cores(), [&] {
      const Ref source = shared ? m.slots.at(0) : m.slots.at(1);
      if (!shared) m.slots.at(1).store(m.slots.at(0).load());
      k.copy_to(k.core() + 1, source, m.slots.at(0), sent, received).wait_sent();
    });
  }

  // A scope in a loop, with buffers of its own.
  void scopes() {
    k.loop(0, 2, [&](Scalar i) {
      k.scope([&] {
        const Ref own = k.vmem(Elem::kF32, kBlock);
        const Sem in = k.dma_sem();
        k.copy(m.x.at(i), own, in).wait();
        m.slots.at(1).store(own.load());
      });
    });
  }

  // Core 0 hands a block to each of the others and waits until they have taken it.
  void hand_out() {
    const Sem sent = k.dma_sem(), received = k.dma_sem(), taken = k.sem();
    k.barrier_all();
    k.if_(
        k.core() == 0,
        [&] {
          for (int c = 1; c < k.cores(); ++c)
            k.copy_to(c, m.slots.at(0), m.slots.at(1), sent, received);
          for (int c = 1; c < k.cores(); ++c) k.wait(m.slots.at(0), m.slots.at(0), sent);
          k.wait(taken, k.cores() - 1);
        },
        [&] {
          k.wait_received(m.slots.at(1), received);
          m.slots.at(2).store(m.slots.at(1).load());
          k.signal(taken, 1, 0);
        });
  }

  void any() {
    void (Pattern::* const all[])() = {&Pattern::stream,   &Pattern::exchange, &Pattern::credits,
                                       &Pattern::barriers, &Pattern::token,    &Pattern::scopes,
                                       &Pattern::hand_out};
    (this->*all[random.below(std::size(all))])();
  }
};

}  // namespace

Generated patterned(uint64_t seed) {
  Random random(seed);
  Kernel k("patterned", 2 + random.below(2));
  Memory m = operands(k);
  k.scope([&] {
    allocate(k, m);
    Pattern pattern{k, m, random};
    pattern.any();
    if (k.cores() == 2 && random.chance(40)) pattern.any();
    copy_out(k, m);
  });
  return finished(k, seed);
}

}  // namespace gridless::certificate
