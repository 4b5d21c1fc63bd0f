// What the rules share: names, reasons, schedules.
#include "gridless/emulate/check/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless::emulate {

namespace {
// Which memory: addresses of one are never those of another.
ir::Space space_of(const Trace& trace, int32_t memory) {
  const Type type = trace.kernel->sites[static_cast<size_t>(trace.site_of(memory))].type;
  if (!type.is_memref()) return ir::Space::kNone;
  return ir::is_semaphore(type.elem()) ? ir::Space::kSemaphore : type.space();
}
}  // namespace

Rules::Rules(const Trace& trace)
    : trace_(trace), order_(trace), replay_(trace, false), in_order_(trace, true) {
  waits_of_.resize(static_cast<size_t>(trace.cores));
  for (size_t w = 0; w < trace.waits.size(); ++w)
    waits_of_[static_cast<size_t>(trace.waits[w].at.core)].push_back(static_cast<int32_t>(w));
  for (size_t m = 0; m < trace.lives.size(); ++m) {
    const auto memory = static_cast<int32_t>(m);
    if (trace.site_of(memory) <= trace.kernel->barrier_site()) continue;
    for (const Life& life : trace.lives[m])
      if (life.end.known())
        scope_ends_[{trace.core_of(memory), space_of(trace, memory)}].push_back(life.end.pos);
  }
  for (auto& [where, ends] : scope_ends_) std::ranges::sort(ends);
}

bool Rules::first(const std::string& kind, const ir::Op* a, const ir::Op* b) {
  return reported_.emplace(kind, a, b).second;
}

Finding& Rules::add(std::string kind, const Code& code, std::string message, std::string hint,
                    std::vector<int> cores) {
  std::ranges::sort(cores);
  cores.erase(std::ranges::unique(cores).begin(), cores.end());
  findings_.push_back({.diagnostic = {.kind = std::move(kind),
                                      .message = std::move(message),
                                      .where = code.op ? code.op->loc : SourceLoc(),
                                      .notes = {},
                                      .hint = std::move(hint)},
                       .cores = std::move(cores),
                       .schedule = std::nullopt});
  return findings_.back();
}

std::string Rules::describe_place(const Access& a) const {
  return fmt::format("{} of {}", trace_.footprints.str(a.footprint), trace_.memory_name(a.memory));
}

std::string Rules::describe(const Access& a) const {
  const char* verb = a.write ? "writes" : "reads";
  const std::string target = describe_place(a);
  if (a.copy < 0)
    return fmt::format("{} on core {} at {} {} {}", a.code.op->info().name, a.at.core,
                       trace_.where(a.code), verb, target);
  return fmt::format("the copy that core {} starts at {} {} {}", a.at.core, trace_.where(a.code),
                     verb, target);
}

const WaitEvent& Rules::wait_at(Node n) const {
  const auto& list = waits_of_[static_cast<size_t>(n.core)];
  return trace_.waits[static_cast<size_t>(list[static_cast<size_t>(n.waits - 1)])];
}

std::string Rules::why(const Access& a, Node b) const {
  if (a.copy < 0)
    return fmt::format("no chain of signals and waits leads from core {} there to core {} here",
                       a.at.core, b.core);
  const std::vector<Node> ends = order_.ends(a);
  const CopyEvent& c = trace_.copies[static_cast<size_t>(a.copy)];
  if (ends.empty()) {
    if (c.arrived < 0) return "the copy has no bytes";
    const int32_t s = trace_.increments[static_cast<size_t>(c.arrived)].semaphore;
    const SemaphoreLog& log = trace_.semaphores[static_cast<size_t>(s)];
    if (log.waits.empty())
      return fmt::format("nothing waits on {}, which counts its bytes", trace_.semaphore_name(s));
    return fmt::format(
        "no wait proves that it is over: {} counts bytes, not copies, and its waits can do with "
        "the bytes of other copies",
        trace_.semaphore_name(s));
  }
  std::string out = "it is known to be over only after the wait";
  for (size_t k = 0; k < ends.size(); ++k)
    out += fmt::format("{} at {} on core {}", k == 0 ? "" : " or",
                       trace_.where(wait_at(ends[k]).code), ends[k].core);
  return out + ", and nothing makes that come first";
}

void Rules::show_always(Finding& f) const {
  f.schedule = Schedule{.kind = f.diagnostic.kind,
                        .message = f.diagnostic.message,
                        .location = f.diagnostic.where.str_if_known(),
                        .launches = trace_.launches,
                        .hold = std::nullopt,
                        .steps = {}};
}

void Rules::hold(Finding& f, Node held, std::string held_at, Node until,
                 std::string until_at) const {
  show_always(f);
  f.schedule->hold = Schedule::Hold{
      .held = trace_.point(held), .copy = std::nullopt, .until = trace_.point(until)};
  f.schedule->hold->held.at = std::move(held_at);
  f.schedule->hold->until.at = std::move(until_at);
}

// Numbers copies as the schedule does: by core and launch.
void Rules::hold_copy(Finding& f, int32_t copy, bool may_read) const {
  Schedule::Hold& hold = *f.schedule->hold;
  hold.copy = 0;
  hold.may_read = may_read;
  for (int32_t c = 0; c < copy; ++c) {
    const Point start = trace_.point(trace_.copies[static_cast<size_t>(c)].start);
    if (start.core == hold.held.core && start.launch == hold.held.launch) ++*hold.copy;
  }
}

void Rules::show(Finding& f, const Access& a, Node until, std::string until_at) const {
  hold(f, a.at, trace_.where(a.code), until, std::move(until_at));
  if (a.copy >= 0) hold_copy(f, a.copy, a.write);
  say_timing(f);
}

void Rules::show(Finding& f, const Increment& e, Node until, std::string until_at) const {
  hold(f, e.issue, trace_.where(e.code), until, std::move(until_at));
  if (e.copy >= 0) {
    const int32_t sent = trace_.copies[static_cast<size_t>(e.copy)].sent;
    hold_copy(f, e.copy, sent < 0 || &trace_.increments[static_cast<size_t>(sent)] != &e);
  }
  say_timing(f);
}

void Rules::show(Finding& f, Node held, std::string held_at, Node until,
                 std::string until_at) const {
  hold(f, held, std::move(held_at), until, std::move(until_at));
  say_timing(f);
}

void Rules::say_timing(Finding& f) {
  const Schedule::Hold& h = *f.schedule->hold;
  f.diagnostic.notes.push_back(
      fmt::format("timing: {} core {} at {}; the others run on until core {} reaches {}",
                  h.copy ? "hold back the copy started by" : "hold", h.held.core, h.held.at,
                  h.until.core, h.until.at));
}

std::string Rules::what_ends(Node n) const {
  for (size_t m = 0; m < trace_.lives.size() && n.known(); ++m) {
    const auto memory = static_cast<int32_t>(m);
    if (trace_.core_of(memory) != n.core) continue;
    for (const Life& life : trace_.lives[m])
      if (life.end.known() && life.end.pos == n.pos)
        return "the end of the scope of " + trace_.memory_name(memory);
  }
  return kEntry;
}

Node Rules::ready(int core, int32_t memory, int32_t life) const {
  const auto& lives = trace_.lives[static_cast<size_t>(memory)];
  // The launch's entry: the life of the barrier semaphore's site, in the same launch.
  const int32_t per_launch = trace_.cores * trace_.sites;
  const int32_t barrier =
      memory / per_launch * per_launch + trace_.memory(core, trace_.kernel->barrier_site());
  const Node entry = trace_.lives[static_cast<size_t>(barrier)].at(0).begin;
  if (trace_.site_of(memory) <= trace_.kernel->barrier_site()) return entry;
  if (static_cast<size_t>(life) >= lives.size()) return {};
  // Allocating does nothing at run time. The address may be somebody else's until the last scope
  // of the same memory that ended there before.
  const auto found = scope_ends_.find({core, space_of(trace_, memory)});
  if (found == scope_ends_.end()) return entry;
  const std::vector<int32_t>& ends = found->second;
  const auto after = std::ranges::upper_bound(ends, lives[static_cast<size_t>(life)].begin.pos);
  if (after == ends.begin() || *std::prev(after) < entry.pos) return entry;
  return {core, *std::prev(after), 0};
}

}  // namespace gridless::emulate
