// Rules: the findings that a trace and its order give, valid for every timing of the run's data.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/emulate/check/order.h"
#include "gridless/emulate/check/replay.h"
#include "gridless/emulate/check/trace.h"

namespace gridless::emulate {

struct Finding {
  Diagnostic diagnostic;
  std::vector<int> cores;
  std::optional<Schedule> schedule;
  std::vector<const ir::Op*> accesses = {};  // a race: the ops of both
};

struct WaitForGraph;  // wait_for.h

class Rules {
 public:
  explicit Rules(const Trace& trace);

  void races();            // R6, R12
  void lifetimes();        // R7: copies and other cores' accesses against scope and kernel ends
  void entries();          // R8: remote writes and increments against kernel entry
  void timing_reads();     // R10
  void semaphores_left();  // not zero at the end, and why
  void never_written();    // results that nobody writes, or blocks of them
  void windows();          // blocks of a grid that are fetched too early or written back too late
  void deadlock(const WaitForGraph& graph);

  std::vector<Finding> take() { return std::move(findings_); }
  bool exact() const { return replay_.exact(); }
  int passes() const { return order_.passes(); }

 private:
  struct Class;  // accesses of one memory that are alike
  void races_of(const std::vector<int32_t>& accesses);
  void pair(const Class& a, const Class& b);
  void race(const Access& a, const Access& b);
  void self_overlap(const CopyEvent& copy);
  struct Windows;  // the blocks of one tensor on one core
  void blocks_meet(const Windows& all);
  void block_meets(const Windows& all, const Access& a);
  void stale_block(const WindowCopy& out, const WindowCopy& other);
  void block_race(const WindowCopy& w, const Access& a);
  std::string describe(const WindowCopy& w) const;
  void too_early(Node begin, Node at, const Code& code, int owner, const std::string& target,
                 const std::string& details);
  // The event after which the address belongs to this life of the memory or semaphore site.
  Node ready(int core, int32_t memory, int32_t life) const;
  Finding& add(std::string kind, const Code& code, std::string message, std::string hint,
               std::vector<int> cores);
  static constexpr const char* kEntry = "its entry";
  // kEntry, or "the end of the scope of BUFFER": what a node of ready() is.
  std::string what_ends(Node n) const;
  // True the first time for this kind and pair of ops.
  bool first(const std::string& kind, const ir::Op* a, const ir::Op* b = nullptr);
  std::string describe(const Access& a) const;
  std::string describe_place(const Access& a) const;
  std::string why(const Access& a, Node b) const;
  std::string who_feeds(int32_t semaphore) const;
  // The timing that shows a finding: `a` is held, or the core of `held` before it, until `until`
  // has happened; a note says it in words. To be called when the finding is complete.
  void show(Finding& f, const Access& a, Node until, std::string until_at) const;
  void show(Finding& f, const Increment& e, Node until, std::string until_at) const;
  void show_always(Finding& f) const;  // in every timing
  void show(Finding& f, Node held, std::string held_at, Node until, std::string until_at) const;
  void hold(Finding& f, Node held, std::string held_at, Node until, std::string until_at) const;
  void hold_copy(Finding& f, int32_t copy, bool may_read) const;
  static void say_timing(Finding& f);
  const WaitEvent& wait_at(Node n) const;
  int64_t left_in_a_scope(int32_t semaphore) const;
  void bytes_of_waits(int32_t semaphore, const Stuck* stuck);

  const Trace& trace_;
  Order order_;
  Replay replay_, in_order_;
  std::vector<std::vector<int32_t>> waits_of_;                            // per core
  std::map<std::pair<int, ir::Space>, std::vector<int32_t>> scope_ends_;  // by core: positions
  std::vector<Finding> findings_;
  std::set<std::tuple<std::string, const ir::Op*, const ir::Op*>> reported_;
  std::set<std::pair<int32_t, int32_t>> met_blocks_;  // arguments whose blocks were reported
};

}  // namespace gridless::emulate
