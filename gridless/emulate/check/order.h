// Order: which events come before which in every timing (rules R3, R4 and R2).
//
// x precedes wait w if the increments of w's semaphore that do not need x add up to less than what
// w and the owner's earlier waits consume. Clocks: for each wait and core, how far that core must
// have come. The clock of a wait is, per core, the larger of the clock of the core's wait before it
// and the C-th unit of the semaphore's increments, sorted by their clocks, where C is what the
// waits up to this one consume. Clocks start from the run itself (no order can hold that the run
// breaks) and are only lowered until nothing changes: the greatest fixpoint. "Whoever passes a
// barrier first must have had everybody's signal" is a circular argument that a least fixpoint
// cannot make.
//
// Clocks change only at waits, so there is one row per wait. Semaphores that only their owner
// increments (nearly all) need no row work. A pass goes through the semaphores in the order of the
// run and costs O(cores * (waits + increments)), less where nothing changed; a few passes do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gridless/emulate/check/trace.h"

namespace gridless::emulate {

class Order {
 public:
  explicit Order(const Trace& trace);

  // a is b or comes before it, in every timing.
  bool before(Node a, Node b) const {
    if (!a.known() || !b.known()) return false;
    return a.core == b.core ? a.pos <= b.pos : clock(b, a.core) >= a.pos;
  }
  // How far `core` must have come when n happens.
  int32_t clock(Node n, int core) const {
    if (core == n.core) return n.pos;
    return rows_[static_cast<size_t>(n.core)]
                [static_cast<size_t>(n.waits) * static_cast<size_t>(trace_.cores) +
                 static_cast<size_t>(core)];
  }
  // The first wait after which an increment is known to have happened, and with it, if it is a
  // copy's, the whole copy; not known() if there is none. A copy may be counted in part while it
  // runs (R2): all but its last unit may stand in for others.
  Node known(int32_t increment) const { return known_[static_cast<size_t>(increment)]; }
  // The access is over when n happens.
  bool over(const Access& a, Node n) const;
  // The first waits after which it is over; may be empty.
  std::vector<Node> ends(const Access& a) const;
  int passes() const { return passes_; }

 private:
  // A semaphore that other cores increment and its owner waits for. Increments by the core that
  // issues them: along each core clocks never fall.
  struct Shared {
    int32_t semaphore = 0;
    int owner = 0;
    std::vector<std::vector<int32_t>> by_core;
  };
  void start_from_run();
  void start_limits(const std::vector<Shared>& shared);
  void solve();
  void find_known();
  // Per core, the first row that was lowered: in the pass before, and in this one so far.
  struct Lowered {
    std::vector<int32_t> before, now;
  };
  void lower(const Shared& shared, Lowered& lowered);
  void lower(const Node& wait, int c, int32_t proved, Lowered& lowered);

  const Trace& trace_;
  std::vector<std::vector<int32_t>> rows_;    // per core: (1 + its waits) x cores
  std::vector<std::vector<int32_t>> limits_;  // the same, what each wait's own semaphore proves
  std::vector<Node> known_;
  std::vector<int32_t> wait_numbers_;  // of trace.waits, on its core, from 1
  int passes_ = 0;
};

}  // namespace gridless::emulate
