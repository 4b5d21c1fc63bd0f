// Waiting between threads: spin briefly, then sleep in the kernel until told.
//
// A thread that only spins is fast on an idle machine and ruinous on a busy one, where the thread
// it waits for needs the processor it burns. A few microseconds of spinning cover a semaphore that
// is about to be signalled; whatever takes longer pays for a futex.
#pragma once

#include <atomic>
#include <cstdint>

namespace gridless::cpu {

// Where one thread waits for conditions that other threads make true. Any number of threads notify;
// one thread at a time waits.
class Parker {
 public:
  // Returns once ready() is true. `ready` reads atomics that others change before they call
  // notify(); it is called many times and must not block.
  template <class Ready>
  void wait_until(Ready ready) {
    if (ready()) return;
    for (int i = 0; i < kSpins; ++i) {
      relax();
      if (ready()) return;
    }
    while (true) {
      const uint32_t epoch = epoch_.load(std::memory_order_relaxed);
      // Announce first, look once more, sleep last: notify() changes the condition first and looks
      // for sleepers last, so in every order one of the two sees the other.
      asleep_.store(true, std::memory_order_seq_cst);
      if (ready()) break;
      sleep(epoch);
    }
    asleep_.store(false, std::memory_order_relaxed);
  }

  // To be called after the change that may make a condition true; that change must be a
  // sequentially consistent store or read-modify-write. Cheap when nobody sleeps: one load.
  void notify() {
    if (!asleep_.load(std::memory_order_seq_cst)) return;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    wake();
  }

 private:
  // About 5 us where a pause takes 40 to 140 cycles (Skylake and later), 0.5 us before.
  static constexpr int kSpins = 150;

  static void relax() { __builtin_ia32_pause(); }
  void sleep(uint32_t epoch);  // until the epoch is another, or for no reason
  void wake();

  std::atomic<uint32_t> epoch_ = 0;
  std::atomic<bool> asleep_ = false;
};

// A semaphore: a count that threads add to and one thread waits on. The waiter names its Parker, so
// that a thread that runs several virtual cores can wait for any of their semaphores at once.
class Semaphore {
 public:
  explicit Semaphore(Parker& owner) : owner_(&owner) {}

  // By any thread. What was written before is seen by the thread that takes it.
  void signal(int64_t n = 1) {
    count_.fetch_add(n, std::memory_order_seq_cst);
    owner_->notify();
  }

  // By the owner.
  bool reached(int64_t n) const { return count_.load(std::memory_order_seq_cst) >= n; }
  void take(int64_t n) {
    if (!reached(n)) owner_->wait_until([&] { return reached(n); });
    count_.fetch_sub(n, std::memory_order_relaxed);
  }
  bool try_take(int64_t n) {
    if (!reached(n)) return false;
    count_.fetch_sub(n, std::memory_order_relaxed);
    return true;
  }
  int64_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<int64_t> count_ = 0;
  Parker* owner_;
};

}  // namespace gridless::cpu
