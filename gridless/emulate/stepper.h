// Stepper: a launch that moves one visible step at a time, in any order that its user likes. Every
// core stands before its next visible event (gate.h); copies under way stand between their parts.
#pragma once

#include <optional>
#include <vector>

#include "gridless/emulate/gate.h"
#include "gridless/emulate/launch.h"
#include "gridless/emulate/schedule.h"

namespace gridless::emulate {

// Told of each event right before it happens, and of each step of a copy right after.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void happens(const Core& core, const Event& event) = 0;
  // `index` in Machine::in_flight; if it is over it is still there.
  virtual void moved(size_t /*index*/, const InFlight& /*copy*/) {}
};

class Stepper : private Gate {
 public:
  // launches: so many one after another on each core, cores independent of each other. Nobody has
  // entered the kernel at first. Throws Fault, as all that follow.
  Stepper(const Kernel& kernel, std::span<const CoreMemory> memory, const Options& options,
          int launches, int copy_parts, Witness* witness = nullptr);
  Stepper(const Stepper&) = delete;

  Launch& launch() { return launch_; }
  Machine& machine() { return launch_.machine(); }
  const Machine& machine() const { return launch_.machine(); }

  // The event that a core stands before; null: it has returned from its last launch.
  const Event* next(int core) const {
    const auto& e = next_[static_cast<size_t>(core)];
    return e ? &*e : nullptr;
  }
  bool can_go_on(int core) const;
  bool all_returned() const;
  void choices(std::vector<Choice>& out) const;
  void take(const Choice& choice);
  // When no choice is left: results are in memory; says what is wrong with the end.
  Report end();

  // For whoever saves and restores a machine.
  std::optional<Event>& next_of(int core) { return next_[static_cast<size_t>(core)]; }

 private:
  bool pass(const Core& core, Event event) override;
  void go_on(Core& core);
  void returned(Core& core);

  Launch launch_;
  int launches_;
  Witness* witness_;
  std::vector<std::optional<Event>> next_;  // by core
  bool granted_ = false;
};

}  // namespace gridless::emulate
