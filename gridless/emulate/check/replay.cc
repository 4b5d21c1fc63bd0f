#include "gridless/emulate/check/replay.h"

#include <algorithm>
#include <set>

namespace gridless::emulate {

Replay::Replay(const Trace& trace, bool in_order) : trace_(trace), in_order_(in_order) {
  steps_of_.resize(static_cast<size_t>(trace.cores));
  for (size_t w = 0; w < trace.waits.size(); ++w) {
    const Node& at = trace.waits[w].at;
    steps_of_[static_cast<size_t>(at.core)].push_back(
        {.pos = at.pos, .wait = static_cast<int32_t>(w)});
  }
  for (size_t i = 0; i < trace.increments.size(); ++i) {
    const Node& at = trace.increments[i].issue;
    steps_of_[static_cast<size_t>(at.core)].push_back(
        {.pos = at.pos, .increment = static_cast<int32_t>(i)});
  }
  for (auto& steps : steps_of_)
    std::ranges::stable_sort(steps, {}, [](const Step& s) { return s.pos; });
}

const std::vector<int32_t>& Replay::run(const Held& held) {
  const auto [it, fresh] = cache_.try_emplace(held);
  std::vector<int32_t>& reach = it->second;
  if (!fresh) return reach;
  const auto n = static_cast<size_t>(trace_.cores);
  reach.assign(n, INT32_MAX);
  std::vector<size_t> next(n, 0);
  std::vector<int64_t> value(trace_.semaphores.size(), 0);
  std::vector<int> waiting(trace_.semaphores.size(), -1);  // only the owner waits
  std::set<std::pair<int, int>> late;                      // source, destination: R12
  std::vector<int> work;
  for (size_t c = n; c-- > 0;) work.push_back(static_cast<int>(c));
  while (!work.empty()) {
    const int core = work.back();
    work.pop_back();
    const auto c = static_cast<size_t>(core);
    reach[c] = INT32_MAX;
    for (; next[c] < steps_of_[c].size(); ++next[c], ++steps_) {
      const Step& step = steps_of_[c][next[c]];
      if (held.core == core && step.pos >= held.pos) break;
      if (step.wait >= 0) {
        const WaitEvent& w = trace_.waits[static_cast<size_t>(step.wait)];
        if (value[static_cast<size_t>(w.semaphore)] < w.total) {
          waiting[static_cast<size_t>(w.semaphore)] = core;
          reach[c] = step.pos;
          break;
        }
        continue;
      }
      const Increment& e = trace_.increments[static_cast<size_t>(step.increment)];
      const auto s = static_cast<size_t>(e.semaphore);
      int64_t amount = e.amount;
      const bool is_held = step.increment == held.first || step.increment == held.second;
      // All but the last unit of a copy may be counted before it is complete.
      if (is_held) amount = e.copy >= 0 ? amount - 1 : 0;
      if (in_order_ && e.copy >= 0) {
        const CopyEvent& copy = trace_.copies[static_cast<size_t>(e.copy)];
        if (trace_.owner(e.semaphore) != core) {
          const std::pair pair{core, static_cast<int>(copy.to_core)};
          if (is_held) {
            late.insert(pair);
          } else if (late.contains(pair)) {
            amount = 0;
          }
        }
      }
      value[s] += amount;
      if (waiting[s] >= 0) {
        work.push_back(waiting[s]);
        waiting[s] = -1;
      }
    }
    if (held.core == core) reach[c] = std::min(reach[c], held.pos);
  }
  return reach;
}

bool Replay::can_precede(Node n, Node event) {
  if (n.core == event.core) return n.pos < event.pos;
  return reached({.core = event.core, .pos = event.pos}, n);
}

bool Replay::can_miss(int32_t increment, Node n) {
  const Increment& e = trace_.increments[static_cast<size_t>(increment)];
  if (e.copy < 0) return can_precede(n, e.issue);
  return reached({.first = increment}, n);
}

bool Replay::can_overtake(const Access& a, Node n) {
  if (a.copy < 0) return can_precede(n, a.at);
  const CopyEvent& c = trace_.copies[static_cast<size_t>(a.copy)];
  Held held;
  held.first = c.arrived;
  if (!a.write) held.second = c.sent;
  return reached(held, n);
}

}  // namespace gridless::emulate
