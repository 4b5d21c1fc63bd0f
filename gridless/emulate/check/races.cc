// R6: overlapping accesses, one a write, neither over before the other starts. R12: those that are
// ordered if copies of one pair of cores land in the order of their starts.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gridless/emulate/check/rules.h"

namespace gridless::emulate {

// Accesses with one footprint, direction and starting core, in the order of the run. Along a core
// what is over before one event is over before all later ones, so only neighbours need a test.
struct Rules::Class {
  int32_t footprint = 0;
  bool write = false, copies = false;
  int32_t core = 0;
  std::vector<const Access*> list;
};

void Rules::races() {
  std::vector<std::vector<int32_t>> by_memory(trace_.lives.size());
  std::vector<bool> shared(trace_.lives.size(), false), written(trace_.lives.size(), false);
  for (size_t k = 0; k < trace_.accesses.size(); ++k) {
    const Access& a = trace_.accesses[k];
    const auto m = static_cast<size_t>(a.memory);
    by_memory[m].push_back(static_cast<int32_t>(k));
    if (a.copy >= 0) shared[m] = true;
    if (a.write) written[m] = true;
  }
  for (size_t m = 0; m < by_memory.size(); ++m)
    if (shared[m] && written[m]) races_of(by_memory[m]);
  for (const CopyEvent& c : trace_.copies) self_overlap(c);
}

void Rules::self_overlap(const CopyEvent& copy) {
  const Access& from = trace_.accesses[static_cast<size_t>(copy.source)];
  const Access& to = trace_.accesses[static_cast<size_t>(copy.target)];
  // A copy onto itself writes what is there: emit_pipeline makes some where it need not copy.
  if (from.memory == to.memory && from.footprint == to.footprint) return;
  if (from.memory != to.memory || !trace_.footprints.overlap(from.footprint, to.footprint)) return;
  if (!first("race", copy.code.op, copy.code.op)) return;
  Finding& f =
      add("race", copy.code,
          fmt::format("a copy's source and target overlap: {} and {} of {}",
                      trace_.footprints.str(from.footprint), trace_.footprints.str(to.footprint),
                      trace_.memory_name(from.memory)),
          "copy through another buffer", {copy.start.core});
  f.diagnostic.notes.push_back(
      fmt::format("started by core {} at {}", copy.start.core, trace_.where(copy.code)));
  show_always(f);
}

void Rules::races_of(const std::vector<int32_t>& accesses) {
  std::map<std::tuple<int32_t, bool, bool, int32_t>, Class> classes;
  for (int32_t k : accesses) {
    const Access& a = trace_.accesses[static_cast<size_t>(k)];
    Class& c = classes[{a.footprint, a.write, a.copy >= 0, a.at.core}];
    c.footprint = a.footprint;
    c.write = a.write;
    c.copies = a.copy >= 0;
    c.core = a.at.core;
    c.list.push_back(&a);
  }
  const Footprints& prints = trace_.footprints;
  std::vector<const Class*> sorted;
  for (const auto& [key, c] : classes)
    if (!prints.empty(c.footprint)) sorted.push_back(&c);
  std::ranges::stable_sort(sorted, {}, [&](const Class* c) { return prints.first(c->footprint); });
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Class& a = *sorted[i];
    for (size_t j = i; j < sorted.size(); ++j) {
      const Class& b = *sorted[j];
      if (prints.first(b.footprint) > prints.last(a.footprint)) break;
      if ((!a.write && !b.write) || (!a.copies && !b.copies)) continue;
      if (!prints.overlap(a.footprint, b.footprint)) continue;
      pair(a, b);
      if (i != j) pair(b, a);
    }
  }
}

// Every a before every later b.
void Rules::pair(const Class& a, const Class& b) {
  const auto seq = [](const Access* x) { return x->seq; };
  if (a.copies) {
    for (const Access* x : a.list) {
      const auto y = std::ranges::upper_bound(b.list, x->seq, {}, seq);
      if (y != b.list.end() && !order_.over(*x, (*y)->at)) race(*x, **y);
    }
  } else if (a.core != b.core) {
    for (const Access* y : b.list) {
      const auto x = std::ranges::lower_bound(a.list, y->seq, {}, seq);
      if (x != a.list.begin() && !order_.before((*std::prev(x))->at, y->at))
        race(**std::prev(x), *y);
    }
  }
}

namespace {
std::string race_hint(const Access& a, const Access& b) {
  if (a.copy >= 0 && a.write && b.copy < 0)
    return "wait for the copy's bytes on its own semaphore before touching its target";
  if (a.copy >= 0 && !a.write && b.copy < 0)
    return "wait for the copy (a remote one: for its send semaphore) before overwriting its source";
  if (a.copy < 0)
    return "let the core that starts the copy first wait for a signal sent after the last use";
  return "wait for the first copy before starting the second, or give each a slot and a semaphore "
         "of its own";
}
}  // namespace

void Rules::race(const Access& a, const Access& b) {
  if (reported_.contains({"race", a.code.op, b.code.op})) return;
  if (!replay_.can_overtake(a, b.at)) return;
  const bool always = in_order_.can_overtake(a, b.at);
  const std::string kind = always ? "race" : "order_assumption";
  if (!first(kind, a.code.op, b.code.op)) return;
  const char* fault = a.write && b.write ? "two writes have no certain order"
                      : a.write          ? "a read may come before the write is over"
                                         : "a write may come before the read is over";
  Finding& f = add(kind, b.code, fmt::format("{}, in {}", fault, describe_place(b)),
                   race_hint(a, b), {a.at.core, b.at.core, trace_.core_of(a.memory)});
  f.accesses = {a.code.op, b.code.op};
  f.diagnostic.notes.push_back("first: " + describe(a));
  f.diagnostic.notes.push_back("second: " + describe(b));
  f.diagnostic.notes.push_back("why: " + why(a, b.at));
  if (!always) {
    f.diagnostic.severity = Diagnostic::Severity::kWarning;
    f.diagnostic.notes.push_back(
        "clean only if copies from one core to another land in the order of their starts, which "
        "the chip is not known to promise");
  }
  show(f, a, b.at, trace_.where(b.code));
}

}  // namespace gridless::emulate
