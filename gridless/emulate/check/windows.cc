// R6 for the blocks of a grid. The chip's pipeline moves them beside the steps: a block that step k
// reads is fetched while step k - 1 runs, and one that step k wrote goes out while step k + 1 runs
// (emit_pipeline's order: start the next fetch, wait for one's own, run, start to write back, wait
// for the write-back before). With one buffer (pipeline_mode synchronous) they move between steps.
//
// A run in program order moves them between steps, outputs first. What it does in another order
// than the pipeline may is looked for here: only memory that two arguments reach can show it, as
// operands that are aliased to results do.
#include <fmt/format.h>

#include <algorithm>

#include "gridless/emulate/check/rules.h"

namespace gridless::emulate {
namespace {

// Operands by number, an aliased result by its operand's.
int tensor_of(const Argument& arg) {
  return arg.role == Argument::Role::kOutput ? arg.aliased : arg.tensor;
}

// The steps (Trace::steps) at whose beginning a block may first be under way, and is over.
int32_t first_step(const Trace& trace, const WindowCopy& w) {
  const bool early = w.in && !trace.kernel->arguments[static_cast<size_t>(w.argument)].synchronous;
  return early ? std::max(w.step - 1, 0) : w.step;
}
int32_t last_step(const Trace& trace, const WindowCopy& w) {
  const bool late = !w.in && !trace.kernel->arguments[static_cast<size_t>(w.argument)].synchronous;
  return late ? w.step + 1 : w.step;
}

}  // namespace

struct Rules::Windows {
  int core = 0;
  int tensor = 0;
  std::vector<const WindowCopy*> list;  // by step
};

void Rules::windows() {
  std::map<std::pair<int, int>, Windows> by_tensor;
  for (const WindowCopy& w : trace_.windows) {
    const int tensor = tensor_of(trace_.kernel->arguments[static_cast<size_t>(w.argument)]);
    Windows& all = by_tensor[{w.core, tensor}];
    all.core = w.core;
    all.tensor = tensor;
    all.list.push_back(&w);
  }
  for (const auto& [key, all] : by_tensor) blocks_meet(all);
  const auto launch = static_cast<int32_t>(trace_.cores * trace_.sites);
  for (const Access& a : trace_.accesses) {
    if (by_tensor.empty() || a.memory >= launch) continue;  // the second launch is as the first
    const auto site = static_cast<size_t>(trace_.site_of(a.memory));
    if (site >= trace_.kernel->arguments.size()) continue;
    const Argument& arg = trace_.kernel->arguments[site];
    if (arg.tensor < 0 || !arg.in_place()) continue;
    const auto found = by_tensor.find({trace_.core_of(a.memory), tensor_of(arg)});
    if (found != by_tensor.end()) block_meets(found->second, a);
  }
}

// A block that goes out, and what moves before it is out.
void Rules::blocks_meet(const Windows& all) {
  for (size_t i = 0; i < all.list.size(); ++i) {
    const WindowCopy& out = *all.list[i];
    if (out.in) continue;
    const int32_t last = last_step(trace_, out);
    for (size_t j = i + 1; j < all.list.size(); ++j) {
      const WindowCopy& other = *all.list[j];
      if (other.step > last + 1) break;
      // The next block starts out before this one is waited for; a fetch comes after that wait.
      const bool meet =
          other.in ? first_step(trace_, other) < last : other.step <= last && last > out.step;
      if (meet && trace_.footprints.overlap(out.footprint, other.footprint))
        stale_block(out, other);
    }
  }
}

// Accesses of refs that reach the tensor in place.
void Rules::block_meets(const Windows& all, const Access& a) {
  const auto& steps = trace_.steps[static_cast<size_t>(all.core)];
  const auto begin = [&](int32_t step) {
    return static_cast<size_t>(step) < steps.size() ? steps[static_cast<size_t>(step)].at : Node();
  };
  const auto over_before = [&](const WindowCopy* w) {
    return order_.over(a, begin(first_step(trace_, *w)));
  };
  const auto starts_after = [&](const WindowCopy* w) {
    return order_.before(begin(last_step(trace_, *w)), a.at);
  };
  // Along the steps both hold from some block on, or up to some.
  auto w = std::ranges::partition_point(all.list, starts_after);
  for (; w != all.list.end() && !over_before(*w); ++w) {
    if ((!a.write && (*w)->in) || starts_after(*w)) continue;
    if (!trace_.footprints.overlap((*w)->footprint, a.footprint)) continue;
    const Node at = begin(first_step(trace_, **w));
    if (a.at.core == all.core && at.known() && a.at.pos <= at.pos && !replay_.can_overtake(a, at))
      continue;
    block_race(**w, a);
  }
}

std::string Rules::describe(const WindowCopy& w) const {
  const std::vector<StepBegin>& steps = trace_.steps[static_cast<size_t>(w.core)];
  const StepBegin& step = steps[static_cast<size_t>(std::max(w.in ? w.step : w.step - 1, 0))];
  return fmt::format("{} of the tensor of {}, which the grid's pipeline {} step ({})",
                     trace_.footprints.str(w.footprint),
                     trace_.kernel->arguments[static_cast<size_t>(w.argument)].name,
                     w.in ? "fetches for" : "writes back after", fmt::join(step.grid, ", "));
}

void Rules::stale_block(const WindowCopy& out, const WindowCopy& other) {
  if (!met_blocks_.emplace(out.argument, other.argument).second) return;
  Finding& f = add("race", {},
                   other.in ? "a block is fetched before it is certainly written back"
                            : "two blocks that overlap have no certain order on their way out",
                   other.in ? "read what an earlier step wrote through the step's own window or "
                              "scratch, or leave two steps between"
                            : "let blocks of a result not overlap",
                   {out.core});
  f.diagnostic.where = trace_.kernel->function->loc;
  f.diagnostic.notes.push_back("first: " + describe(out));
  f.diagnostic.notes.push_back("second: " + describe(other));
  f.diagnostic.notes.push_back(
      "why: a block goes out while the next step runs, and is fetched while the step before its "
      "own runs");
}

void Rules::block_race(const WindowCopy& w, const Access& a) {
  if (!first("race", a.code.op, nullptr)) return;
  const bool own = a.at.core == w.core;
  Finding& f = add("race", a.code,
                   a.write && w.in ? "a block may be fetched before the write to it is over"
                   : a.write       ? "a write and the write-back of a block have no certain order"
                                   : "a read may come before the block is written back",
                   "touch a tensor that the grid's pipeline moves too only where no block of these "
                   "steps lies",
                   {w.core, a.at.core});
  f.accesses = {a.code.op};
  f.diagnostic.notes.push_back("first: " + describe(w));
  f.diagnostic.notes.push_back("second: " + describe(a));
  f.diagnostic.notes.push_back(
      own ? "why: a block goes out while the next step runs, and is fetched while the step before "
            "its own runs"
          : "why: no chain of signals and waits orders the two");
}

}  // namespace gridless::emulate
