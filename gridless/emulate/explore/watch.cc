#include "gridless/emulate/explore/watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless::emulate {

Watch::Watch(const Kernel& kernel, int cores)
    : by_position(kernel.sites.size(), false), kernel_(kernel) {
  lives.resize(static_cast<size_t>(cores));
  for (Lives& l : lives) {
    l.begun.assign(kernel.sites.size(), 0);
    l.ended.assign(kernel.sites.size(), 0);
  }
}

std::vector<bool> Watch::uneven_sites() const {
  std::vector<bool> out(kernel_.sites.size(), false);
  for (size_t s = 0; s < out.size(); ++s)
    for (const Lives& l : lives) out[s] = out[s] || l.begun[s] != lives[0].begun[s];
  return out;
}

bool Watch::window(int site) const {
  return site < kernel_.barrier_site() && kernel_.arguments[static_cast<size_t>(site)].is_window;
}

ir::Space Watch::space(int site) const {
  const Type type = kernel_.sites[static_cast<size_t>(site)].type;
  return ir::is_semaphore(type.elem()) ? ir::Space::kSemaphore : type.space();
}

void Watch::found(std::string kind, std::string message, const ir::Op* first, int first_core,
                  const ir::Op* second, int second_core) {
  if (!reported_.emplace(kind, first, second).second) return;
  if (in_second_launch) message += " (two launches, one after the other)";
  findings.push_back({.kind = std::move(kind),
                      .message = std::move(message),
                      .first = first,
                      .second = second,
                      .cores = {first_core, second_core},
                      .launches = in_second_launch ? 2 : 1});
}

void Watch::happens(const Core& core, const Event& event) {
  Lives& mine = lives[static_cast<size_t>(core.id)];
  const auto site = static_cast<size_t>(event.first_site);
  switch (event.kind) {
    case Event::Kind::kEnter:
      ++mine.entered;
      std::ranges::fill(mine.begun, 0);
      std::ranges::fill(mine.ended, 0);
      break;
    case Event::Kind::kLoad:
      access(core, event, false);
      break;
    case Event::Kind::kStore:
      access(core, event, true);
      break;
    case Event::Kind::kCopy:
      if (event.copy->bytes > 0) start(core, event);
      break;
    case Event::Kind::kSignal:
      remote(core, event.semaphores->core, event.semaphores->site, true, event.op);
      break;
    case Event::Kind::kWait:
      break;
    case Event::Kind::kCount:
      read_count(core, event);
      break;
    case Event::Kind::kAllocate:
      ++mine.begun[site];
      std::erase_if(early, [&](const Early& e) {
        return e.owner == core.id && e.site == event.first_site && e.life < mine.begun[site];
      });
      break;
    case Event::Kind::kScopeEnd:
      scope_end(core, event.first_site, event.last_site, event.op);
      break;
    case Event::Kind::kReturn:
      if (event.leaves) leave(core, event.op);
      break;
  }
}

void Watch::meets(const Flight& f, const Elements& e, bool write, const ir::Op* op, int core) {
  const bool hits_target = f.target.overlaps(e);
  if (!hits_target && !(write && !f.is_read && f.source.overlaps(e))) return;
  found("race",
        fmt::format("{} at {} on core {} {} what the copy that core {} started at {} still {}",
                    op->info().name, op->loc.str(), core, write ? "writes" : "reads", f.copy->core,
                    f.copy->op->loc.str(), hits_target ? "writes" : "reads"),
        f.copy->op, f.copy->core, op, core);
}

void Watch::access(const Core& core, const Event& event, bool write) {
  const Elements e(*event.buffer, event.region);
  for (const Flight& f : flights) meets(f, e, write, event.op, core.id);
  if (write) return;
  Hash& history = lives[static_cast<size_t>(core.id)].history;
  const Buffer& b = *event.buffer;
  const int bits = storage_bits(b.type.elem());
  event.region.for_each_run([&](int64_t first, int64_t count, int64_t stride) {
    if (stride == 1 && bits >= 8) {
      const auto bytes = static_cast<size_t>(bits / 8);
      history.mix(std::span<const std::byte>(b.data).subspan(static_cast<size_t>(first) * bytes,
                                                             static_cast<size_t>(count) * bytes));
      return;
    }
    for (int64_t n = 0; n < count; ++n)
      history.mix(get_bits(b.data.data(), first + n * stride, bits));
  });
}

void Watch::start(const Core& core, const Event& event) {
  const Transfer& t = *event.copy;
  Flight fresh{.copy = event.copy,
               .launch = core.launch,
               .source = Elements(*t.src.buffer, region_of(t.src)),
               .target = Elements(*t.dst.buffer, region_of(t.dst))};
  for (const Flight& f : flights) {
    meets(f, fresh.source, false, event.op, core.id);
    meets(f, fresh.target, true, event.op, core.id);
  }
  // A copy onto itself writes what is there.
  if (!(t.src == t.dst) && fresh.source.overlaps(fresh.target))
    found("race",
          fmt::format("source and target overlap of the copy that core {} starts at {}", core.id,
                      event.op->loc.str()),
          event.op, core.id, event.op, core.id);
  const int to = t.dst.buffer->core;
  remote(core, to, t.dst.buffer->site, false, event.op);
  remote(core, to, t.arrived_ref.buffer->site, true, event.op);
  flights.push_back(std::move(fresh));
}

void Watch::remote(const Core& core, int owner, int site, bool count, const ir::Op* op) {
  if (owner == core.id || site == kernel_.barrier_site()) return;
  const Lives& mine = lives[static_cast<size_t>(core.id)];
  const Lives& theirs = lives[static_cast<size_t>(owner)];
  const auto s = static_cast<size_t>(site);
  const char* verb = count ? "adds to" : "writes";
  const std::string& name = kernel_.sites[s].name;
  if (theirs.entered <= core.launch) {
    if (kernel_.call.device_barrier) return;
    found("missing_barrier",
          fmt::format("core {} {} {} of core {} before that has entered the kernel", core.id, verb,
                      name, owner),
          op, core.id);
    return;
  }
  const bool position = scoped(site) && by_position[s];
  const bool inside = theirs.begun[s] > theirs.ended[s];
  const int32_t life = !position ? std::max(0, mine.begun[s] - 1)
                       : inside  ? theirs.ended[s]
                                 : theirs.begun[s];
  const bool gone = theirs.left > core.launch || (scoped(site) && theirs.ended[s] > life) ||
                    (window(site) && theirs.begun[s] > mine.begun[s]);
  if (gone && (!count || scoped(site))) {
    found(scoped(site) || window(site) ? "use_after_scope" : "dma_in_flight_at_end",
          fmt::format("core {} {} {} of core {} after its end", core.id, verb, name, owner), op,
          core.id);
  } else if (!gone && scoped(site) && theirs.begun[s] <= life) {
    early.push_back({owner, site, life, core.id, op});
  }
}

void Watch::memory_ends(const Buffer& buffer, const std::string& kind, const ir::Op* op) {
  for (const Flight& f : flights) {
    const Transfer& t = *f.copy;
    const bool memory = (t.src.buffer == &buffer && !f.is_read) || t.dst.buffer == &buffer;
    const bool count =
        scoped(buffer.site) &&
        ((t.sent && t.sent_ref.buffer == &buffer && !f.is_read) ||
         (t.arrived_ref.buffer->site == buffer.site && t.dst.buffer->core == buffer.core));
    if (!memory && !count) continue;
    found(kind,
          fmt::format("the copy that core {} started at {} is still to {} {} of core {} at its end",
                      t.core, t.op->loc.str(), memory ? "touch" : "count on", buffer.name,
                      buffer.core),
          t.op, t.core, op, buffer.core);
  }
}

void Watch::count_left(const Buffer& buffer) {
  for (const Semaphore& s : buffer.semaphores)
    if (s.count != 0)
      found("semaphore_not_zero",
            fmt::format("{} at {} of core {} holds {} at the end", buffer.name, buffer.where.str(),
                        buffer.core, s.count),
            nullptr, buffer.core);
}

void Watch::scope_end(const Core& core, int first, int last, const ir::Op* op) {
  Lives& mine = lives[static_cast<size_t>(core.id)];
  for (int site = first; site < last; ++site) {
    const auto s = static_cast<size_t>(site);
    if (mine.ended[s] == mine.begun[s]) continue;
    memory_ends(core.buffers[s], "use_after_scope", op);
    count_left(core.buffers[s]);
    mine.ended[s] = mine.begun[s];
    for (const Early& e : early)
      if (e.owner == core.id && space(e.site) == space(site))
        found("missing_barrier",
              fmt::format("core {} uses {} of core {} before that has left the scope of {}", e.from,
                          kernel_.sites[static_cast<size_t>(e.site)].name, core.id,
                          core.buffers[s].name),
              e.op, e.from);
  }
}

void Watch::leave(const Core& core, const ir::Op* op) {
  for (const Early& e : early)
    if (e.owner == core.id)
      found("missing_barrier",
            fmt::format("core {} uses {} of core {}, which never allocates it", e.from,
                        kernel_.sites[static_cast<size_t>(e.site)].name, core.id),
            e.op, e.from);
  std::erase_if(early, [&](const Early& e) { return e.owner == core.id; });
  scope_end(core, kernel_.barrier_site() + 1, static_cast<int>(kernel_.sites.size()), op);
  for (int s = 0; s < kernel_.barrier_site(); ++s)
    memory_ends(core.buffers[static_cast<size_t>(s)],
                window(s) ? "use_after_scope" : "dma_in_flight_at_end", op);
  ++lives[static_cast<size_t>(core.id)].left;
}

void Watch::new_window(const Core& core, size_t site, const ir::Op* op) {
  memory_ends(core.buffers[site], "use_after_scope", op);
  ++lives[static_cast<size_t>(core.id)].begun[site];
}

void Watch::read_count(const Core& core, const Event& event) {
  const bool under_way = std::ranges::any_of(flights, [&](const Flight& f) {
    return f.copy->arrived == event.semaphore || (f.copy->sent == event.semaphore && !f.is_read);
  });
  const int64_t value = event.semaphore->count;
  const auto [it, fresh] = counts_.try_emplace({core.id, core.launch, core.events}, value);
  if (under_way || it->second != value)
    found("timing_dependent_read",
          fmt::format(
              "core {} reads a count that {}", core.id,
              under_way ? "a copy under way still adds to"
                        : fmt::format("is {} in one timing and {} in another", it->second, value)),
          event.op, core.id);
  lives[static_cast<size_t>(core.id)].history.mix(static_cast<uint64_t>(value));
}

void Watch::stopped(const Diagnostic& d, int core) {
  if (!stops_.insert(d.kind + d.where.str()).second) return;
  findings.push_back(
      {.kind = d.kind, .message = d.message, .place = d.where, .cores = {core, core}});
}

void Watch::end(const Stepper& stepper, const Hash& results) {
  const Machine& m = stepper.machine();
  if (!stepper.all_returned()) {
    std::string who;
    const ir::Op* op = nullptr;
    int first = 0;
    for (const Core& core : m.cores) {
      const Event* e = stepper.next(core.id);
      if (!e) continue;
      if (!op) {
        op = e->op;
        first = core.id;
      }
      who += fmt::format("{}core {} at {} (needs {}, has {})", who.empty() ? "" : ", ", core.id,
                         e->op->loc.str(), e->amount, e->semaphore->count);
    }
    found("deadlock", "these wait for ever: " + who, op, first);
    return;
  }
  for (const Core& core : m.cores)
    for (const Buffer& b : core.buffers) count_left(b);
  if (has_result_ && results != result_ && findings.empty())
    found("race", "results differ between two timings", nullptr, 0);
  has_result_ = true;
  result_ = results;
}

}  // namespace gridless::emulate
