#include <algorithm>

#include "tests/certificate/library/program_parts.h"

namespace gridless::certificate {

using lang::Sems;

namespace {

using Clock = std::vector<int>;  // by core: how many of its steps are known to be over

// What happened to a slot, and after which step of which core it is over.
struct Use {
  bool write = false;
  int core = -1, step = 0;  // core -1: not yet over
};

// One step of a core. `a` and `b`: slots, or amounts; peer: the core that a copy or signal goes to.
struct Act {
  enum Kind { kCopyIn, kCopy, kCopyTo, kWaitCopy, kSignal, kWait, kStore, kAdd } kind = kStore;
  int a = 0, b = 0, peer = 0, semaphore = 0, received = 0;
};

class Weaver {
 public:
  explicit Weaver(uint64_t seed) : random_(seed) {
    cores = 2 + random_.below(2);
    dma_semaphores = 1 + random_.below(2);
    semaphores = 1 + random_.below(2);
    barrier = random_.chance(92);
    const auto n = static_cast<size_t>(cores);
    acts.resize(n);
    clocks_.assign(n, Clock(n, 0));
    uses_.assign(n * kSlots, {});
    units_.resize(n * 2);
    bytes_.resize(n * 2);
    const int steps = 5 + random_.below(6);
    for (int s = 0, tries = 0; s < steps && tries < 200; ++tries) s += step() ? 1 : 0;
    drain();
  }

  int cores = 2, dma_semaphores = 1, semaphores = 1;
  bool barrier = true;
  std::vector<std::vector<Act>> acts;

 private:
  std::vector<Use>& uses(int core, int slot) {
    return uses_[static_cast<size_t>(core * kSlots + slot)];
  }
  Clock& clock(int core) { return clocks_[static_cast<size_t>(core)]; }
  int now(int core) { return static_cast<int>(acts[static_cast<size_t>(core)].size()) + 1; }
  void put(int core, Act act) {
    acts[static_cast<size_t>(core)].push_back(act);
    clock(core)[static_cast<size_t>(core)] =
        static_cast<int>(acts[static_cast<size_t>(core)].size());
  }
  void join(int core, const Clock& other) {
    for (size_t c = 0; c < other.size(); ++c) clock(core)[c] = std::max(clock(core)[c], other[c]);
  }

  // In this execution, and by its waits.
  bool safe(int core, int on, int slot, bool write) {
    return std::ranges::all_of(uses(on, slot), [&](const Use& u) {
      if (!write && !u.write) return true;
      return u.core >= 0 && clock(core)[static_cast<size_t>(u.core)] >= u.step;
    });
  }
  // Mostly what is safe.
  bool takes(bool is_safe) { return is_safe || random_.chance(4); }

  struct Pending {
    Clock clock;
    std::vector<std::pair<size_t, size_t>> uses;  // that are over with it: place, number
  };
  std::pair<size_t, size_t> note(int on, int slot, bool write) {
    const auto place = static_cast<size_t>(on * kSlots + slot);
    uses_[place].push_back({write});
    return {place, uses_[place].size() - 1};
  }

  bool step() {
    const int core = random_.below(cores), peer = (core + 1 + random_.below(cores - 1)) % cores;
    const int a = random_.below(kSlots), b = random_.below(kSlots);
    const int d = random_.below(dma_semaphores), r = random_.below(dma_semaphores);
    const int s = random_.below(semaphores);
    switch (random_.below(10)) {
      case 0:
      case 1:
        if (!takes(safe(core, core, a, true))) return false;
        put(core, {.kind = Act::kCopyIn, .a = a, .semaphore = d});
        bytes(core, d).push_back({clock(core), {note(core, a, true)}});
        return true;
      case 2:
        if (a == b || !takes(safe(core, core, a, false) && safe(core, core, b, true))) return false;
        put(core, {.kind = Act::kCopy, .a = a, .b = b, .semaphore = d});
        bytes(core, d).push_back({clock(core), {note(core, a, false), note(core, b, true)}});
        return true;
      case 3:
      case 4:
        if (!takes(safe(core, core, a, false) && safe(core, peer, b, true))) return false;
        put(core,
            {.kind = Act::kCopyTo, .a = a, .b = b, .peer = peer, .semaphore = d, .received = r});
        bytes(core, d).push_back({clock(core), {note(core, a, false)}});
        bytes(peer, r).push_back({clock(core), {note(peer, b, true)}});
        return true;
      case 5:
      case 6:
        return wait_copy(core, d);
      case 7: {
        const int on = random_.chance(80) ? peer : core;
        put(core, {.kind = Act::kSignal, .a = 1 + random_.below(2), .peer = on, .semaphore = s});
        for (int n = acts[static_cast<size_t>(core)].back().a; n > 0; --n)
          units(on, s).push_back({clock(core), {}});
        return true;
      }
      case 8:
        return wait(core, s, 1 + random_.below(2));
      default:
        return access(core, a, b);
    }
  }

  bool access(int core, int a, int b) {
    const bool add = a != b && random_.chance(50);
    if (!takes(safe(core, core, b, true) && (!add || safe(core, core, a, false)))) return false;
    const int at = now(core);
    put(core, {.kind = add ? Act::kAdd : Act::kStore, .a = a, .b = b});
    if (add) uses(core, a).push_back({false, core, at});
    uses(core, b).push_back({true, core, at});
    return true;
  }

  bool wait_copy(int core, int d) {
    auto& queue = bytes(core, d);
    if (queue.empty()) return false;
    const Pending p = queue.front();
    queue.erase(queue.begin());
    const int at = now(core);
    put(core, {.kind = Act::kWaitCopy, .semaphore = d});
    join(core, p.clock);
    for (const auto& [place, number] : p.uses) {
      uses_[place][number].core = core;
      uses_[place][number].step = at;
    }
    return true;
  }

  bool wait(int core, int s, int n) {
    auto& queue = units(core, s);
    if (static_cast<int>(queue.size()) < n) return false;
    put(core, {.kind = Act::kWait, .a = n, .semaphore = s});
    for (int k = 0; k < n; ++k) join(core, queue[static_cast<size_t>(k)].clock);
    queue.erase(queue.begin(), queue.begin() + n);
    return true;
  }

  // Everything that was counted is taken.
  void drain() {
    for (int core = 0; core < cores; ++core) {
      for (int d = 0; d < dma_semaphores; ++d)
        while (wait_copy(core, d)) {
        }
      for (int s = 0; s < semaphores; ++s)
        while (wait(core, s, std::max<int>(1, static_cast<int>(units(core, s).size())))) {
        }
    }
  }

  std::vector<Pending>& units(int core, int s) { return units_[static_cast<size_t>(core * 2 + s)]; }
  std::vector<Pending>& bytes(int core, int d) { return bytes_[static_cast<size_t>(core * 2 + d)]; }

  Random random_;
  std::vector<Clock> clocks_;
  std::vector<std::vector<Use>> uses_;               // by core and slot
  std::vector<std::vector<Pending>> units_, bytes_;  // by core and semaphore
};

void emit(Kernel& k, const Memory& m, const Act& act, Sems dma, Sems signals) {
  const auto slot = [&](int i) { return m.slots.at(i); };
  switch (act.kind) {
    case Act::kCopyIn:
      k.copy(m.x.at(act.a), slot(act.a), dma.at(act.semaphore));
      return;
    case Act::kCopy:
      k.copy(slot(act.a), slot(act.b), dma.at(act.semaphore));
      return;
    case Act::kCopyTo:
      k.copy_to(act.peer, slot(act.a), slot(act.b), dma.at(act.semaphore), dma.at(act.received));
      return;
    case Act::kWaitCopy:
      k.wait(slot(0), slot(0), dma.at(act.semaphore));
      return;
    case Act::kSignal:
      k.signal(signals.at(act.semaphore), act.a, act.peer);
      return;
    case Act::kWait:
      k.wait(signals.at(act.semaphore), act.a);
      return;
    case Act::kStore:
      slot(act.b).store(k.constant(kBlock, Elem::kF32, act.a));
      return;
    case Act::kAdd:
      slot(act.b).store(slot(act.a).load() + 1.0);
      return;
  }
}

}  // namespace

Generated woven(uint64_t seed) {
  const Weaver w(seed);
  Kernel k("woven", w.cores);
  Memory m = operands(k);
  k.scope([&] {
    allocate(k, m);
    const Sems dma = k.dma_sems(2), signals = k.sems(2);
    if (w.barrier) k.barrier_all();
    for (int c = 0; c < w.cores; ++c)
      k.if_(k.core() == c, [&] {
        for (const Act& act : w.acts[static_cast<size_t>(c)]) emit(k, m, act, dma, signals);
      });
    copy_out(k, m);
  });
  return finished(k, seed);
}

}  // namespace gridless::certificate
