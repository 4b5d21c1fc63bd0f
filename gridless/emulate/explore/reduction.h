// Reduction: which steps are enough from a state.
//
// A set of steps T is enough (a persistent set) if whatever the others can do without T, now and
// later, conflicts with no step in T. Then every timing can be rearranged, without changing the
// order of conflicting steps, so that it starts with a step of T; and faults are a matter of that
// order alone (watch.h looks at conflicting steps only). Two rules find such sets:
//
// One core's next event alone, if it is
//   wait         that is met: nobody else takes from a semaphore, additions leave it met;
//   signal       to its own core, or to one that is inside the kernel, and not to a scoped
//                semaphore of another core (whose end conflicts with it); if the program reads
//                counts, no signal;
//   load, store  and copy within the core: of memory that no copy under way touches in conflict,
//                and that no remote copy of the program may write: then only the core's own later
//                copies could conflict, and those come after;
//   scope end,   if no copy under way touches what ends, and no remote copy or signal goes to
//   return       anything scoped (return: to anything but the barrier semaphore);
//   entry        if no remote copy or signal goes to anything but the barrier semaphore.
// The copies of one core, if it waits for a semaphore that only itself adds to: their reading, and
//   the landing of those within the core. Until one of them moves the core stays where it is; what
//   they touch is touched by nobody else (no remote copy of the program writes there).
//
// What remote copies and signals may reach is read off the program: the allocation or argument that
// the target ref comes from; any at all, if that cannot be told.
#pragma once

#include <optional>
#include <vector>

#include "gridless/emulate/explore/watch.h"
#include "gridless/emulate/stepper.h"

namespace gridless::emulate {

class Reduction {
 public:
  explicit Reduction(const Stepper& stepper, const Kernel& kernel);

  // A core whose next step alone is enough.
  std::optional<int> one_core(const Stepper& stepper, const Watch& watch) const;
  // Indices of copies under way whose next steps are enough; empty: none found.
  std::vector<size_t> own_copies(const Stepper& stepper, const Watch& watch) const;

 private:
  bool alone(const Core& core, const Event& event, const Watch& watch) const;
  bool copy_alone(const Event& event, const Watch& watch) const;
  bool quiet(const Core& core, int first, int last, const Watch& watch) const;
  bool remote_memory(const Buffer& b) const { return remote_[static_cast<size_t>(b.site)]; }
  void mark(const ir::Value* ref);

  const Kernel& kernel_;
  std::vector<bool> remote_;  // by site: a remote copy or signal may touch it
  bool any_remote_ = false, scoped_remote_ = false;
  bool reads_counts_ = false;
};

}  // namespace gridless::emulate
