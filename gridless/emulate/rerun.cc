#include "gridless/emulate/rerun.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/emulate/explore/watch.h"
#include "gridless/emulate/scheduler.h"

namespace gridless::emulate {
namespace {

// The bytes that a load or a read of a count saw.
struct Seen {
  bool happened = false;
  Elem elem = Elem::kI32;
  int bits = 32;
  std::vector<uint32_t> values;
};

// Watches a run for faults, and notes what the event at `point` sees.
class Observer {
 public:
  Observer(const Kernel& kernel, int cores, const Schedule& schedule)
      : watch(kernel, cores), schedule_(schedule) {
    watch.in_second_launch = schedule.launches > 1;
  }

  void happens(const Core& core, const Event& event) {
    watch.happens(core, event);
    if (!schedule_.hold) return;
    const int64_t number = event.kind == Event::Kind::kEnter ? 0 : core.events + 1;
    for (const auto& [point, seen] :
         {std::pair{&schedule_.hold->until, &until}, std::pair{&schedule_.hold->held, &held}})
      if (event.kind != Event::Kind::kAllocate && point->is(core.id, core.launch, number))
        note(event, *seen);
  }

  void moved(size_t index, const InFlight& copy) {
    if (copy.read == copy.parts && !watch.flights[index].is_read) watch.read_over(index);
    if (copy.over()) watch.landed(index);
  }

  Watch watch;
  Seen until, held;

 private:
  static void note(const Event& event, Seen& seen) {
    seen.happened = true;
    if (event.kind == Event::Kind::kCount)
      seen.values.push_back(static_cast<uint32_t>(event.semaphore->count));
    if (event.kind != Event::Kind::kLoad) return;
    const Buffer& b = *event.buffer;
    seen.elem = b.type.elem();
    seen.bits = storage_bits(seen.elem);
    event.region.for_each_run([&](int64_t first, int64_t count, int64_t stride) {
      for (int64_t n = 0; n < count; ++n)
        seen.values.push_back(get_bits(b.data.data(), first + n * stride, seen.bits));
    });
  }

  const Schedule& schedule_;
};

class WatchedOrder : public ProgramOrder {
 public:
  WatchedOrder(Observer& observer, int launches) : observer_(observer), launches_(launches) {}
  void happens(const Core& core, const Event& event) override {
    ProgramOrder::happens(core, event);
    observer_.happens(core, event);
  }
  void moved(size_t index, const InFlight& copy) override { observer_.moved(index, copy); }
  int launches() const override { return launches_; }

 private:
  Observer& observer_;
  int launches_;
};

// Follows a schedule: its steps, or its hold; then program order.
class Follower : public Scheduler {
 public:
  Follower(Observer& observer, const Schedule& schedule)
      : observer_(observer), schedule_(schedule) {}

  std::optional<size_t> choose(const Stepper& run, std::span<const Choice> possible) override {
    if (next_ < schedule_.steps.size()) return step(possible);
    if (!schedule_.hold) return rest_.choose(run, possible);
    return hold(run, possible);
  }
  void happens(const Core& core, const Event& event) override {
    rest_.happens(core, event);
    const bool before = observer_.until.happened;
    observer_.happens(core, event);
    // A core that is held for a copy shall meet it: half landed.
    if (!before && observer_.until.happened && event.copy && !schedule_.hold->copy)
      meeting_ = {Choice::Kind::kLand, core.id, core.launch, core.copies};
  }
  void moved(size_t index, const InFlight& copy) override {
    observer_.moved(index, copy);
    if (meeting_ && copy.landed == 1 &&
        *meeting_ == Choice{Choice::Kind::kLand, copy.copy->core, copy.launch, copy.number})
      half_landed_ = meeting_;
  }
  int launches() const override { return schedule_.launches; }
  int copy_parts() const override { return schedule_.steps.empty() ? 2 : 1; }

  std::string not_followed;

 private:
  std::optional<size_t> step(std::span<const Choice> possible) {
    const auto found = std::ranges::find(possible, schedule_.steps[next_++]);
    if (found != possible.end()) return static_cast<size_t>(found - possible.begin());
    not_followed = fmt::format("step {} is not possible there", next_);
    return std::nullopt;
  }

  // What is held goes on only when nothing else can, and not before the hold is over.
  std::optional<size_t> hold(const Stepper& run, std::span<const Choice> possible) {
    std::vector<Choice> others;
    std::vector<size_t> index;
    for (size_t k = 0; k < possible.size(); ++k) {
      const Choice& c = possible[k];
      if (is_held(run, c)) {
        // Hardware may have counted all but its last byte.
        if (c.kind == Choice::Kind::kCount) return k;
        continue;
      }
      others.push_back(c);
      index.push_back(k);
    }
    if (!others.empty()) {
      const auto chosen = rest_.choose(run, others);
      return chosen ? std::optional(index[*chosen]) : std::nullopt;
    }
    const Schedule::Hold& h = *schedule_.hold;
    if (!observer_.until.happened && not_followed.empty())
      not_followed =
          fmt::format("core {} did not come to event {} ({}) while core {} was held at {}",
                      h.until.core, h.until.event, h.until.at, h.held.core, h.held.at);
    // A held core before a copy that it shall meet.
    for (size_t k = 0; k < possible.size(); ++k)
      if (possible[k].kind == Choice::Kind::kCore && is_held(run, possible[k])) return k;
    return rest_.choose(run, possible);
  }

  bool is_held(const Stepper& run, const Choice& c) const {
    const Schedule::Hold& h = *schedule_.hold;
    if (half_landed_ && c == *half_landed_) return !observer_.held.happened;
    if (h.copy)
      return c.kind != Choice::Kind::kCore && c.core == h.held.core && c.launch == h.held.launch &&
             c.copy == *h.copy && !(c.kind == Choice::Kind::kRead && h.may_read);
    if (c.kind != Choice::Kind::kCore || c.core != h.held.core || observer_.held.happened)
      return false;
    const Core& core = run.machine().cores[static_cast<size_t>(c.core)];
    const bool enters = run.next(c.core)->kind == Event::Kind::kEnter;
    return h.held.is(core.id, core.launch, enters ? 0 : core.events + 1);
  }

  Observer& observer_;
  const Schedule& schedule_;
  ProgramOrder rest_;
  size_t next_ = 0;
  std::optional<Choice> meeting_, half_landed_;  // the landing of the copy at the end of the hold
};

std::string value(Elem e, uint32_t bits) {
  if (ir::is_float(e)) return fmt::format("{}", float_from_bits(e, bits));
  return fmt::format("{}", wrap(e, bits));
}

std::optional<std::string> compare(const Point& where, const Seen& here,
                                   const Seen& program_order) {
  if (!here.happened || here.values.empty()) return std::nullopt;
  const std::string reads = fmt::format("core {} reads at {}: ", where.core, where.at);
  if (!program_order.happened || program_order.values.size() != here.values.size())
    return reads +
           fmt::format("{}; program order does not come here", value(here.elem, here.values[0]));
  size_t differ = 0, first = 0;
  for (size_t k = here.values.size(); k-- > 0;)
    if (here.values[k] != program_order.values[k]) {
      ++differ;
      first = k;
    }
  if (differ == 0) return reads + "the same as in program order";
  return reads +
         fmt::format("{}, not {} as in program order{}", value(here.elem, here.values[first]),
                     value(here.elem, program_order.values[first]),
                     here.values.size() > 1
                         ? fmt::format(" ({} of {} elements differ)", differ, here.values.size())
                         : "");
}

void compare_results(const ir::Call& call, int cores, Rerun& r) {
  for (size_t k = 0; k < call.results.size(); ++k) {
    const Elem e = call.results[k].type.elem();
    const int bits = storage_bits(e);
    const int64_t n = call.results[k].type.num_elements();
    const int64_t bytes = tensor_bytes(call.results[k]);
    for (int core = 0; core < cores; ++core) {
      const std::byte* here = r.run.outputs[k].data() + core * bytes;
      const std::byte* there = r.program_order.outputs[k].data() + core * bytes;
      Difference d{.result = static_cast<int>(k), .core = core};
      for (int64_t i = n; i-- > 0;) {
        const uint32_t a = get_bits(here, i, bits), b = get_bits(there, i, bits);
        if (a == b) continue;
        ++d.elements;
        d.first = i;
        d.here = value(e, a);
        d.program_order = value(e, b);
      }
      if (d.elements > 0) r.differences.push_back(std::move(d));
    }
  }
}

}  // namespace

Result<Rerun> rerun(const ir::Module& module, const ir::Call& call, int cores,
                    std::span<const std::span<const std::byte>> inputs, const Schedule& schedule,
                    const Options& options) {
  TRY(LaunchMemory here, launch_memory(call, cores, inputs));
  TRY(LaunchMemory there, launch_memory(call, cores, inputs));
  Rerun out;
  const auto emulator = Emulator::create(module, call);
  if (emulator) {
    Observer plain(emulator->kernel(), cores, schedule),
        hostile(emulator->kernel(), cores, schedule);
    WatchedOrder order(plain, schedule.launches);
    Follower follower(hostile, schedule);
    Options o = options;
    o.scheduler = &order;
    out.program_order.report = emulator->run(there.cores, o);
    if (out.program_order.report.finished) hostile.watch.by_position = plain.watch.uneven_sites();
    o.scheduler = &follower;
    out.run.report = emulator->run(here.cores, o);
    out.not_followed = std::move(follower.not_followed);
    out.followed = out.not_followed.empty();
    out.seen = std::move(hostile.watch.findings);
    if (schedule.hold) {
      out.read = compare(schedule.hold->until, hostile.until, plain.until);
      if (!out.read) out.read = compare(schedule.hold->held, hostile.held, plain.held);
    }
  } else {
    out.run.report.diagnostics = emulator.error();
  }
  out.run.outputs = std::move(here.outputs);
  out.program_order.outputs = std::move(there.outputs);
  if (out.run.report.finished && out.program_order.report.finished)
    compare_results(call, cores, out);
  return out;
}

}  // namespace gridless::emulate
