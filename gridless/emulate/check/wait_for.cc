#include "gridless/emulate/check/wait_for.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace gridless::emulate {
namespace {

using Edge = WaitForGraph::Edge;

// Cores that add to the semaphore of `s` after the hang, until what it lacks is covered.
std::vector<Edge> senders(const Trace& hung, const Trace& beyond, const Stuck& s) {
  std::vector<Edge> out;
  int64_t lacks = s.need - hung.semaphores[static_cast<size_t>(s.semaphore)].left;
  for (int32_t i : beyond.semaphores[static_cast<size_t>(s.semaphore)].increments) {
    const Increment& e = beyond.increments[static_cast<size_t>(i)];
    if (e.issue.pos <= hung.last[static_cast<size_t>(e.issue.core)]) continue;
    if (lacks <= 0) break;
    lacks -= e.amount;
    const bool known =
        std::ranges::any_of(out, [&](const Edge& x) { return x.to == e.issue.core; });
    if (!known) out.push_back({.from = s.core, .to = e.issue.core, .at = beyond.where(e.code)});
  }
  return out;
}

// Cores that hang and have added nothing.
std::vector<Edge> candidates(const Trace& hung, const Stuck& s) {
  std::set<int> gave{s.core};
  for (int32_t i : hung.semaphores[static_cast<size_t>(s.semaphore)].increments)
    gave.insert(hung.increments[static_cast<size_t>(i)].issue.core);
  std::vector<Edge> out;
  if (gave.size() == 1) return out;  // nobody ever did: no reason to suspect one of them
  for (const Stuck& other : hung.stuck)
    if (!gave.contains(other.core))
      out.push_back({.from = s.core, .to = other.core, .at = {}, .candidate = true});
  return out;
}

// A shortest cycle through the graph; edges that were seen are preferred to candidates.
std::vector<int> shortest_cycle(const WaitForGraph& g, bool with_candidates) {
  std::vector<int> best;
  for (const WaitForGraph::Node& start : g.nodes) {
    std::map<int, int> from;
    std::deque<int> queue{start.core};
    while (!queue.empty() && !from.contains(start.core)) {
      const int core = queue.front();
      queue.pop_front();
      for (const Edge& e : g.edges)
        if (e.from == core && (with_candidates || !e.candidate) &&
            from.try_emplace(e.to, core).second)
          queue.push_back(e.to);
    }
    if (!from.contains(start.core)) continue;
    std::vector<int> cycle;
    int core = start.core;
    do cycle.push_back(core = from[core]);
    while (core != start.core);
    std::ranges::reverse(cycle);
    if (best.empty() || cycle.size() < best.size()) best = std::move(cycle);
  }
  return best;
}

void mark_cycle(WaitForGraph& g) {
  g.cycle = shortest_cycle(g, false);
  if (g.cycle.empty()) g.cycle = shortest_cycle(g, true);
  for (size_t k = 0; k < g.cycle.size(); ++k)
    for (Edge& e : g.edges)
      e.in_cycle |= e.from == g.cycle[k] && e.to == g.cycle[(k + 1) % g.cycle.size()];
}

}  // namespace

std::string WaitForGraph::whom(int core) const {
  std::string out;
  std::vector<int> silent;
  for (const Edge& e : edges) {
    if (e.from != core) continue;
    if (e.candidate) {
      silent.push_back(e.to);
      continue;
    }
    const auto node = std::ranges::find(nodes, e.to, &Node::core);
    out += fmt::format("{}{} would add to it at {}{}", out.empty() ? "" : "; ",
                       e.to == core ? "it" : fmt::format("core {}", e.to), e.at,
                       e.to == core  ? " itself, after the wait"
                       : node->waits ? ", but waits itself"
                                     : "");
  }
  if (silent.empty()) return out;
  const bool many = silent.size() > 1;
  return fmt::format("core{} {}, which ha{} not, wait{} too", many ? "s" : "",
                     fmt::join(silent, ", "), many ? "ve" : "s", many ? "" : "s");
}

WaitForGraph wait_for_graph(const Emulator& emulator, int cores, const CheckInputs& inputs,
                            const GarbageRun& run, const Options& options) {
  const Trace& hung = run.recorder->trace;
  Options beyond_options = options;
  beyond_options.past_deadlock = true;
  // The hang is what matters; what garbage makes of the rest is not worth waiting for.
  beyond_options.max_steps =
      std::min(options.max_steps, std::max<int64_t>(1'000'000, 2 * run.report.steps));
  const GarbageRun beyond = run_recorded(emulator, cores, inputs, beyond_options);
  WaitForGraph g{.cores = cores};
  std::set<int> named;
  for (const Stuck& s : hung.stuck) {
    std::vector<Edge> edges = senders(hung, beyond.recorder->trace, s);
    if (edges.empty()) edges = candidates(hung, s);
    named.insert(s.core);
    for (Edge& e : edges) {
      named.insert(e.to);
      g.edges.push_back(std::move(e));
    }
  }
  for (int core : named) {
    WaitForGraph::Node node{.core = core};
    const auto s = std::ranges::find(hung.stuck, core, &Stuck::core);
    if (s != hung.stuck.end()) {
      node.waits = true;
      node.at = hung.where({s->op, s->iteration});
      node.for_what =
          fmt::format("{} on {}, which holds {}", s->need, hung.semaphore_name(s->semaphore),
                      hung.semaphores[static_cast<size_t>(s->semaphore)].left);
    }
    g.nodes.push_back(std::move(node));
  }
  mark_cycle(g);
  return g;
}

}  // namespace gridless::emulate
