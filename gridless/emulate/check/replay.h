// Replay: the exact answer (rule R5) for the pairs that Order leaves open.
//
// Replays the synchronisation of the run - waits, signals, copies - with one event or one copy held
// back for ever, as far as everybody gets without it. x precedes event e in every timing exactly if
// e is not reached. When e is reached, that replay is the timing that shows the fault.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "gridless/emulate/check/trace.h"

namespace gridless::emulate {

class Replay {
 public:
  // in_order: copies of one source and destination core land in the order of their starts (R12).
  Replay(const Trace& trace, bool in_order);

  // The access can still be under way when n happens.
  bool can_overtake(const Access& a, Node n);
  // n can happen although `event` has not.
  bool can_precede(Node n, Node event);
  // n can happen although the increment has not (copies: not fully).
  bool can_miss(int32_t increment, Node n);
  // False after too much work: then the answers are "yes, it can" without looking.
  bool exact() const { return steps_ < kMostSteps; }

 private:
  static constexpr int64_t kMostSteps = 400'000'000;
  struct Step {
    int32_t pos;
    int32_t wait = -1;       // of trace.waits
    int32_t increment = -1;  // of trace.increments
  };
  // What is held back: a core from an event on, or a copy's increments.
  struct Held {
    int32_t core = -1, pos = 0;
    int32_t first = -1, second = -1;
    auto operator<=>(const Held&) const = default;
  };
  // Per core, the first position that is not reached.
  const std::vector<int32_t>& run(const Held& held);
  bool reached(const Held& held, Node n) {
    return !exact() || n.pos < run(held)[static_cast<size_t>(n.core)];
  }

  const Trace& trace_;
  bool in_order_;
  std::vector<std::vector<Step>> steps_of_;  // per core
  std::map<Held, std::vector<int32_t>> cache_;
  int64_t steps_ = 0;
};

}  // namespace gridless::emulate
