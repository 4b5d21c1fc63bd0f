#include "gridless/time/simulation.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/emulate/contents.h"
#include "gridless/emulate/fault.h"

namespace gridless::time {
namespace {

using emulate::Core;
using emulate::Event;
using emulate::Transfer;

}  // namespace

Simulation::Simulation(const emulate::Kernel& kernel, const Regions& regions,
                       std::span<const emulate::CoreMemory> memory, const Placement& placement,
                       const chips::TimeParameters& parameters, const emulate::Options& options,
                       std::vector<Span>* spans)
    : kernel_(kernel),
      regions_(regions),
      placement_(placement),
      p_(parameters),
      spans_(spans),
      launch_(kernel, memory, options),
      clocks_(memory.size()) {
  GRIDLESS_CHECK(placement.devices.size() == memory.size());
  launch_.machine().gate = this;
  add_resources();
}

void Simulation::push(Ns at, Item::Kind kind, int index) {
  queue_.push({at, order_++, kind, index});
}

Outcome Simulation::run() {
  Outcome out;
  try {
    launch_.set_grid_bounds();
    running_ = static_cast<int>(clocks_.size());
    for (Core& core : launch_.machine().cores) {
      launch_.enter(core);
      if (core.state == Core::State::kDone) {
        returned(core);
        continue;
      }
      grid_windows(core, {}, false);
      resume(core.id);
    }
    for (;;) {
      const Ns flow = fluid_.next();
      if (queue_.empty() && fluid_.under_way() == 0) break;
      if (queue_.empty() || flow <= queue_.top().at) {
        now_ = std::max(now_, flow);
        flow_over(flow_transit_[static_cast<size_t>(fluid_.finish())]);
        continue;
      }
      const Item item = queue_.top();
      queue_.pop();
      now_ = item.at;
      switch (item.kind) {
        case Item::Kind::kCore:
          go_on(item.index);
          break;
        case Item::Kind::kStart:
          begin(item.index);
          break;
        case Item::Kind::kArrive:
          arrive(item.index);
          break;
      }
    }
    out.finished = running_ == 0;
    if (!out.finished) {
      for (Core& core : launch_.machine().cores) {
        const CoreClock& clock = clocks_[static_cast<size_t>(core.id)];
        if (!clock.waits) continue;
        const Event& e = clock.pending;
        core.waiting = {.op = e.op,
                        .semaphore = e.semaphore,
                        .name = e.semaphores->name,
                        .need = e.amount,
                        .site = e.semaphores->site,
                        .index = e.semaphore - e.semaphores->semaphores.data()};
      }
      fail(launch_.deadlock());
    }
  } catch (emulate::Fault& f) {
    fail(std::move(f.diagnostic));
  }
  for (const auto& [op, origin] : unknown_) {
    diagnostics_.push_back(
        {.severity = Diagnostic::Severity::kWarning,
         .kind = "unknown_scalar",
         .message =
             fmt::format("{} depends on {}: taken as zero", op->info().name,
                         origin == emulate::Origin::kNotGiven ? "an operand that was not given"
                                                              : "a scalar that comes from vectors"),
         .where = op->loc,
         .notes = {},
         .hint = "give the operands' values with --scalars"});
  }
  for (CoreClock& clock : clocks_) out.cores.push_back(clock.outcome);
  out.diagnostics = std::move(diagnostics_);
  out.steps = launch_.machine().steps;
  return out;
}

void Simulation::fail(Diagnostic d) { diagnostics_.push_back(std::move(d)); }

void Simulation::draw(Span span) {
  if (spans_ && span.end > span.begin) spans_->push_back(std::move(span));
}

// ---- cores

void Simulation::resume(int core) {
  Core& c = launch_.machine().cores[static_cast<size_t>(core)];
  for (;;) {
    held_ = false;
    run_core(launch_.machine(), c);
    launch_.machine().in_flight.clear();  // they are in transit here
    if (c.state == Core::State::kDone) {
      const emulate::Grid::Position before = launch_.grid(static_cast<size_t>(core))->position();
      launch_.after_return(c);
      const bool ended = c.state == Core::State::kDone;
      grid_windows(c, before, ended);
      if (ended) return returned(c);
      continue;
    }
    // It stands before a wait or a read, which is in the queue; or it has just read a semaphore.
    if (held_) return;
  }
}

void Simulation::returned(Core& core) {
  launch_.write_results(core);
  CoreClock& clock = clocks_[static_cast<size_t>(core.id)];
  clock.outcome.end = clock.now;
  --running_;
}

void Simulation::go_on(int core) {
  CoreClock& clock = clocks_[static_cast<size_t>(core)];
  if (clock.pending.kind == Event::Kind::kWait &&
      clock.pending.semaphore->count < clock.pending.amount) {
    clock.waits = true;
    clock.wait_since = now_;
    return;
  }
  granted_ = true;
  resume(core);
}

bool Simulation::pass(const Core& core, Event event) {
  CoreClock& clock = clocks_[static_cast<size_t>(core.id)];
  switch (event.kind) {
    case Event::Kind::kCopy:
      start_copy(clock, event.copy);
      return true;
    case Event::Kind::kSignal:
      start_signal(clock, core.id, event);
      return true;
    case Event::Kind::kWait:
    case Event::Kind::kCount:
      if (granted_) {
        granted_ = false;
        return true;
      }
      clock.pending = std::move(event);
      push(clock.now, Item::Kind::kCore, core.id);
      held_ = true;
      return false;
    default:
      return true;
  }
}

void Simulation::passed(const Core& core, int mark) {
  CoreClock& clock = clocks_[static_cast<size_t>(core.id)];
  const Stretch& s = regions_.stretches[static_cast<size_t>(mark)];
  Parts& parts = clock.outcome.parts;
  const Ns mxu = s.cycles.mxu * p_.mxu_factor / p_.clock_ghz;
  const Ns vector = s.cycles.vector * p_.vector_factor / p_.clock_ghz;
  const Ns scalar = s.cycles.scalar / p_.clock_ghz + s.delay_ns;
  parts.mxu += mxu;
  parts.vector += vector;
  parts.scalar += scalar;
  const Ns end = clock.now + mxu + vector + scalar;
  if (spans_) {
    const Span::Kind kind = mxu > std::max(vector, scalar) ? Span::Kind::kMxu
                            : vector > scalar              ? Span::Kind::kVector
                                                           : Span::Kind::kScalar;
    draw({.kind = kind,
          .core = core.id,
          .begin = clock.now,
          .end = end,
          .where = regions_.regions[static_cast<size_t>(s.region)].first});
  }
  clock.now = end;
}

void Simulation::decides(const ir::Op& op, const emulate::Scalar& s) {
  emulate::Origin& o = unknown_[&op];
  o = std::max(o, s.origin);
}

void Simulation::wake(int core, const Cause& cause) {
  CoreClock& clock = clocks_[static_cast<size_t>(core)];
  clock.waits = false;
  const Ns end = now_ + p_.wake_ns;
  Parts& parts = clock.outcome.parts;
  if (cause.message) {
    const Ns sent = std::clamp(cause.sent, clock.wait_since, end);
    parts.peer_wait += sent - clock.wait_since;
    parts.exchange += end - sent;
  } else {
    parts.hbm += end - clock.wait_since;
  }
  draw({.kind = cause.message ? Span::Kind::kWaitPeer : Span::Kind::kWaitCopy,
        .core = core,
        .begin = clock.wait_since,
        .end = end,
        .where = clock.pending.op->loc});
  clock.now = end;
  push(end, Item::Kind::kCore, core);
}

void Simulation::count(emulate::Semaphore& s, int owner, int64_t amount, const Cause& cause) {
  s.count += amount;
  const CoreClock& clock = clocks_[static_cast<size_t>(owner)];
  if (clock.waits && clock.pending.semaphore == &s && s.count >= clock.pending.amount)
    wake(owner, cause);
}

// The pipeline of a grid fetches a step's blocks while the step before runs, and writes blocks back
// while the next one runs. Kernels without a grid fetch their VMEM operands before they start.
void Simulation::grid_windows(Core& core, const emulate::Grid::Position& before, bool ended) {
  CoreClock& clock = clocks_[static_cast<size_t>(core.id)];
  const emulate::Grid::Position now = launch_.grid(static_cast<size_t>(core.id))->position();
  int64_t in = 0, out = 0;
  for (size_t k = 0; k < kernel_.arguments.size(); ++k) {
    const emulate::Argument& a = kernel_.arguments[k];
    if (a.tensor < 0 || a.in_place() || !a.type.is_memref()) continue;
    const int64_t bytes = a.type.num_bytes();
    const bool first = before.blocks.empty();
    const bool moved =
        a.is_window ? (first || ended || before.blocks[k] != now.blocks[k]) : (first || ended);
    if (!moved) continue;
    const bool output = a.role == emulate::Argument::Role::kOutput;
    if (!output && !ended) in += bytes;
    if (output && !first) out += bytes;
  }
  const auto copy_time = [&](int64_t bytes) {
    return bytes == 0 ? 0.0 : p_.hbm_latency_ns + static_cast<double>(bytes) / p_.hbm_core_rate;
  };
  const Ns fetched = clock.step_start + copy_time(in);
  const Ns ready = ended ? clock.now + copy_time(out) : std::max(clock.now, fetched);
  clock.outcome.hbm_bytes += in + out;
  clock.outcome.parts.hbm += ready - clock.now;
  draw({.kind = Span::Kind::kWaitCopy,
        .core = core.id,
        .begin = clock.now,
        .end = ready,
        .where = kernel_.function->loc});
  clock.now = clock.step_start = ready;
}

}  // namespace gridless::time
