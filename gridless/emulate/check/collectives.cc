#include "gridless/emulate/check/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gridless::emulate {
namespace {

Finding mismatch(std::string message, SourceLoc where, std::string hint) {
  return {{.kind = "collective_mismatch",
           .message = std::move(message),
           .where = std::move(where),
           .notes = {},
           .hint = std::move(hint)},
          {},
          std::nullopt};
}

// The waits of each core on its barrier semaphore, the one that it hangs on included.
std::vector<std::vector<Code>> barriers_passed(const Trace& trace) {
  std::vector<std::vector<Code>> out(static_cast<size_t>(trace.cores));
  for (const WaitEvent& w : trace.waits)
    if (trace.is_barrier(w.semaphore)) out[static_cast<size_t>(w.at.core)].push_back(w.code);
  for (const Stuck& s : trace.stuck)
    if (trace.is_barrier(s.semaphore))
      out[static_cast<size_t>(s.core)].push_back({s.op, s.iteration});
  return out;
}

bool barrier_at_fault(const Trace& trace) {
  if (std::ranges::any_of(trace.stuck,
                          [&](const Stuck& s) { return trace.is_barrier(s.semaphore); }))
    return true;
  if (!trace.finished) return false;
  for (size_t s = 0; s < trace.semaphores.size(); ++s)
    if (trace.is_barrier(static_cast<int32_t>(s)) && trace.semaphores[s].left != 0) return true;
  return false;
}

// A clean kernel may wait at its barriers in its own way (one core collects, the others do not), so
// uneven numbers mean something only where the barrier goes wrong.
void uneven_barriers(const Trace& trace, std::vector<Finding>& out) {
  if (trace.cores == 1 || !barrier_at_fault(trace)) return;
  const auto passed = barriers_passed(trace);
  std::map<size_t, std::vector<int>> cores_by_number;
  for (size_t c = 0; c < passed.size(); ++c)
    cores_by_number[passed[c].size()].push_back(static_cast<int>(c));
  if (cores_by_number.size() == 1) return;
  const auto& [least, few] = *cores_by_number.begin();
  const auto& [most, many] = *cores_by_number.rbegin();
  const Code& extra = passed[static_cast<size_t>(many[0])][least];
  std::string numbers;
  for (const auto& [number, cores] : cores_by_number)
    numbers += fmt::format("{}core{} {} {} time{}", numbers.empty() ? "" : ", ",
                           cores.size() > 1 ? "s" : "", fmt::join(cores, ", "), number,
                           number == 1 ? "" : "s");
  Finding f = mismatch(
      fmt::format("not every core takes part in the barrier: core {} waits at one that core {} "
                  "does not reach",
                  many[0], few[0]),
      extra.op->loc,
      "let every core pass the same barriers in the same order: none under a condition that "
      "differs "
      "between cores");
  f.diagnostic.notes.push_back("waits on the barrier semaphore: " + numbers);
  f.diagnostic.notes.push_back(
      fmt::format("barrier {} of core {} is at {}", least + 1, many[0], trace.where(extra)));
  for (const auto& [number, cores] : cores_by_number)
    f.cores.insert(f.cores.end(), cores.begin(), cores.end());
  std::ranges::sort(f.cores);
  out.push_back(std::move(f));
}

}  // namespace

std::vector<Finding> check_collectives(const Trace& trace) {
  std::vector<Finding> out;
  const Kernel& kernel = *trace.kernel;
  const bool barrier = uses_barrier(kernel);
  if (barrier && !kernel.call.collective_id)
    out.push_back(
        mismatch("the kernel uses the barrier semaphore, but its call has no collective_id",
                 kernel.function->loc,
                 "give every kernel that runs at the same time a collective_id of its own"));
  if (!barrier && kernel.call.collective_id) {
    out.push_back(mismatch(
        fmt::format("the call has collective_id {}, but the kernel never takes the barrier "
                    "semaphore that it names",
                    *kernel.call.collective_id),
        kernel.function->loc, "leave the id out, or pass a barrier before the first remote write"));
    out.back().diagnostic.severity = Diagnostic::Severity::kWarning;
  }
  uneven_barriers(trace, out);
  return out;
}

}  // namespace gridless::emulate
