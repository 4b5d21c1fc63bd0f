#include "gridless/emulate/stepper.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless::emulate {

Stepper::Stepper(const Kernel& kernel, std::span<const CoreMemory> memory, const Options& options,
                 int launches, int copy_parts, Witness* witness)
    : launch_(kernel, memory, options), launches_(launches), witness_(witness) {
  machine().gate = this;
  machine().copy_parts = copy_parts;
  next_.resize(memory.size(), Event{.kind = Event::Kind::kEnter});
  launch_.set_grid_bounds();
}

bool Stepper::can_go_on(int core) const {
  const Event* e = next(core);
  return e && (e->kind != Event::Kind::kWait || e->semaphore->count >= e->amount);
}

bool Stepper::all_returned() const {
  return std::ranges::none_of(next_, [](const auto& e) { return e.has_value(); });
}

void Stepper::choices(std::vector<Choice>& out) const {
  out.clear();
  const int n = static_cast<int>(next_.size());
  for (int c = 0; c < n; ++c)
    if (can_go_on(c)) out.push_back({.core = c});
  for (const InFlight& f : machine().in_flight) {
    Choice choice{.core = f.copy->core, .launch = f.launch, .copy = f.number};
    const auto add = [&](Choice::Kind kind, bool possible) {
      choice.kind = kind;
      if (possible) out.push_back(choice);
    };
    add(Choice::Kind::kCount, f.arrived == 0 && f.copy->bytes > 1);
    add(Choice::Kind::kRead, f.read < f.parts);
    add(Choice::Kind::kLand, f.landed < f.read);
  }
}

void Stepper::take(const Choice& choice) {
  if (choice.kind == Choice::Kind::kCore)
    return go_on(machine().cores[static_cast<size_t>(choice.core)]);
  std::vector<InFlight>& all = machine().in_flight;
  const auto f = std::ranges::find_if(all, [&](const InFlight& x) {
    return x.copy->core == choice.core && x.launch == choice.launch && x.number == choice.copy;
  });
  GRIDLESS_CHECK(f != all.end(), "copy {} of core {} is not under way", choice.copy, choice.core);
  if (choice.kind == Choice::Kind::kCount) f->count_early();
  if (choice.kind == Choice::Kind::kRead) f->read_part();
  if (choice.kind == Choice::Kind::kLand) f->land_part();
  if (witness_) witness_->moved(static_cast<size_t>(f - all.begin()), *f);
  if (f->over()) all.erase(f);
}

bool Stepper::pass(const Core& core, Event event) {
  if (event.kind == Event::Kind::kReturn)
    event.leaves = launch_.grid(static_cast<size_t>(core.id))->at_end();
  const bool allocation = event.kind == Event::Kind::kAllocate;
  if (!granted_ && !allocation) {
    next_[static_cast<size_t>(core.id)] = std::move(event);
    return false;
  }
  if (!allocation) granted_ = false;
  if (witness_) witness_->happens(core, event);
  return true;
}

void Stepper::go_on(Core& core) {
  std::optional<Event>& next = next_[static_cast<size_t>(core.id)];
  const bool enters = next->kind == Event::Kind::kEnter;
  granted_ = !enters;
  if (enters && witness_) witness_->happens(core, *next);
  next.reset();
  if (enters) {
    launch_.enter(core);
    if (core.state == Core::State::kDone) return returned(core);
  }
  while (!next) {
    run_core(machine(), core);
    if (core.state != Core::State::kDone) continue;
    launch_.after_return(core);
    if (core.state == Core::State::kDone) return returned(core);
  }
}

void Stepper::returned(Core& core) {
  launch_.write_results(core);
  if (++core.launch == launches_) return;
  launch_.reset(core);
  next_[static_cast<size_t>(core.id)] = Event{.kind = Event::Kind::kEnter};
}

Report Stepper::end() {
  Report report{.diagnostics = {}, .finished = all_returned(), .steps = machine().steps};
  if (report.finished) {
    launch_.check_semaphores(report.diagnostics);
    return report;
  }
  for (Core& core : machine().cores) {
    const Event* e = next(core.id);
    if (!e) continue;
    core.waiting = {.op = e->op,
                    .semaphore = e->semaphore,
                    .name = e->semaphores->name,
                    .need = e->amount,
                    .site = e->semaphores->site,
                    .index = e->semaphore - e->semaphores->semaphores.data()};
    if (e->semaphores->semaphores.size() > 1)
      core.waiting.name += fmt::format("[{}]", core.waiting.index);
  }
  report.diagnostics.push_back(launch_.deadlock());
  return report;
}

}  // namespace gridless::emulate
