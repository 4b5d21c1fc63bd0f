// Simulation: one launch of a kernel on N cores of a slice, event by event.
//
// Every core runs the kernel's scalars (emulate/scalars_only.h) on a clock of its own: marks let it
// go on by the cycles of the code between events, copies and signals leave the core at its clock,
// and a wait stops it until its semaphore holds enough. A core that does not wait is not stopped by
// anything another core does, so it may run ahead of the others; only waits and reads of
// semaphores bring it back into the common order of time.
//
// Copies are flows (fluid.h) through what they use: the core's HBM, the links of their route
// (chips/links.h), the path between the cores of a chip. A message counts at its sender when its
// last byte has left, and at its receiver one latency later. A core starts one message at a time.
#pragma once

#include <deque>
#include <map>
#include <queue>

#include "gridless/chips/links.h"
#include "gridless/chips/time_parameters.h"
#include "gridless/emulate/gate.h"
#include "gridless/emulate/launch.h"
#include "gridless/time/parts.h"
#include "gridless/time/regions.h"
#include "gridless/time/trace.h"

namespace gridless::time {

// Where a program's cores are.
struct Placement {
  chips::Links links;
  std::vector<int> devices;  // by core
};

struct CoreOutcome {
  Ns end = 0;  // without the launch
  Parts parts;
  int64_t hbm_bytes = 0;  // read and written
  int64_t messages = 0, message_bytes = 0;
};

struct Outcome {
  std::vector<CoreOutcome> cores;
  Diagnostics diagnostics;  // errors: the run did not end; warnings: scalars nobody knows
  int64_t steps = 0;        // instructions executed, all cores
  bool finished = false;
};

class Simulation : private emulate::Gate {
 public:
  // All must outlive the simulation. `spans`: null, or takes what happened.
  Simulation(const emulate::Kernel& kernel, const Regions& regions,
             std::span<const emulate::CoreMemory> memory, const Placement& placement,
             const chips::TimeParameters& parameters, const emulate::Options& options,
             std::vector<Span>* spans);

  Outcome run();

 private:
  // What a wait ended with.
  struct Cause {
    bool message = false;
    Ns sent = 0;  // a message's start
  };
  // A copy or signal on its way.
  struct Transit {
    std::shared_ptr<const emulate::Transfer> copy;  // null: a signal
    emulate::Semaphore* signalled = nullptr;
    int64_t amount = 0;
    int from = 0, to = 0;
    bool message = false;
    bool from_hbm_queue = false;  // holds a place among the core's copies served at once
    Ns sent = 0, latency = 0;
    double work = 0, most = 0;
    std::vector<int> route;
  };
  struct CoreClock {
    Ns now = 0;
    Ns engine_free = 0;  // from here on it can start another message
    bool waits = false;
    emulate::Event pending;  // the wait or read that it stands before
    Ns wait_since = 0;
    int served = 0;  // copies from or to HBM under way
    std::deque<int> queue;
    // Grid: the windows of a step are fetched while the step before runs.
    Ns step_start = 0;
    CoreOutcome outcome;
  };
  struct Item {
    enum class Kind : uint8_t { kCore, kStart, kArrive };
    Ns at;
    int64_t order;
    Kind kind;
    int index;
    bool operator>(const Item& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  bool pass(const emulate::Core& core, emulate::Event event) override;
  bool watches_accesses() const override { return false; }
  bool delivers_signals() const override { return true; }
  void passed(const emulate::Core& core, int mark) override;
  void decides(const ir::Op& op, const emulate::Scalar& s) override;

  void add_resources();
  void push(Ns at, Item::Kind kind, int index);
  void resume(int core);
  void go_on(int core);  // the pending event can happen now
  void returned(emulate::Core& core);
  void grid_windows(emulate::Core& core, const emulate::Grid::Position& before, bool ended);

  void start_copy(CoreClock& clock, std::shared_ptr<const emulate::Transfer> copy);
  void start_signal(CoreClock& clock, int core, const emulate::Event& event);
  void plan_local(Transit& t, const emulate::Transfer& copy);
  void plan_message(Transit& t, bool from_hbm, bool to_hbm);
  int take_transit(Transit t);
  void begin(int transit);  // enters the fluid, or waits for its turn
  void flow_over(int transit);
  void arrive(int transit);
  void land(const emulate::Transfer& copy);
  void count(emulate::Semaphore& s, int owner, int64_t amount, const Cause& cause);
  void wake(int core, const Cause& cause);

  void fail(Diagnostic d);
  void draw(Span span);

  const emulate::Kernel& kernel_;
  const Regions& regions_;
  const Placement& placement_;
  const chips::TimeParameters& p_;
  std::vector<Span>* spans_;
  emulate::Launch launch_;
  Fluid fluid_;
  std::vector<int> hbm_, hbm_chip_, vmem_, ici_core_, links_;  // resources by core, chip, link
  std::vector<CoreClock> clocks_;
  std::vector<Transit> transits_;
  std::vector<int> free_transits_;
  std::vector<int> flow_transit_;  // by flow
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue_;
  Ns now_ = 0;
  int64_t order_ = 0;
  bool granted_ = false;  // the pending event of the core that goes on may happen
  bool held_ = false;     // the core that went on stands before its next one
  int running_ = 0;
  std::map<const ir::Op*, emulate::Origin> unknown_;
  Diagnostics diagnostics_;
};

}  // namespace gridless::time
