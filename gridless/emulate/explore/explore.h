// The exhaustive explorer: runs a small kernel under every timing and says what went wrong in any
// of them. It is the independent check on the certificate (check/check.h), with which it shares the
// interpreter and nothing else: no orders, no replays, no rules. It watches real executions, so
// control flow that depends on data, or on a semaphore's count, is explored too.
//
//   const auto verdict = explore(program.module, program.call, /*cores=*/2, inputs);
//   if (!verdict->exhausted) ...    // a limit was met: no verdict, `stopped` says which
//   if (verdict->clean()) ...       // no timing goes wrong
//   verdict->kinds()                // {"deadlock", "race"}: kinds of the `check` command
//
// Timings. A state is: where each core stands, all memory, all counts, the copies under way. Steps
// lead from state to state: a core goes on to its next visible event (access to memory, start of a
// copy, signal, wait, read of a count, end of a scope, of a grid step, of the kernel; entering the
// kernel is a step of its own), or a copy gets further. A copy between cores first reads its whole
// source and completes its send count, then lands and completes its receive count; a local copy
// does both at once. Every state that these steps can reach is visited once (states are compared by
// 128 bits of hash), but for the reduction below.
//
// Partial counts. Hardware may count a copy while it runs (rule R2 of docs/checking.md). All but
// the last unit are counted at its start here: a wait asks for "at least", so more counts only let
// more happen, and whatever a timing with fewer counts does, this one can do too. A local copy may
// read and land in one step for the same reason: nothing can be enabled between the two.
//
// What is seen, in the very step that does it:
//   race                  a load, store or copy touches what a copy under way still writes, or
//                         writes what one still has to read; also a result that differs between two
//                         timings, should nothing else explain it
//   use_after_scope       a scope or a grid step ends under a copy or count that is still to come,
//                         or these are started after it has ended
//   dma_in_flight_at_end  the same with the end of the kernel
//   missing_barrier       a remote write or count before its target has entered the kernel, or has
//                         left the last scope whose memory may have had the address before (the
//                         barrier semaphore is exempt)
//   timing_dependent_read a count read while a copy still adds to it, or that differs between two
//                         timings
//   deadlock              no step is possible and not every core has returned
//   semaphore_not_zero    counts left when every core has returned
//   and what stops a core: out_of_bounds (a load whose value is never used too), shape_mismatch,
//   invalid_ir, assertion.
// Garbage is not judged (uninitialised_read), nor capacity, bytes of waits or collective ids; an
// order_assumption of the certificate is a race here. A kernel that uses the barrier semaphore and
// is clean is explored once more as two launches back to back on every core, without any order
// between launches of different cores.
//
// Reduction. If some core's next step cannot conflict with anything that another core or a copy may
// ever do before it, only that step is taken from a state (a persistent set of one): signals, waits
// that are met, accesses to memory that no copy under way and no remote copy of the program
// touches. Likewise, when a core waits for its own copies, only those. Two steps that do not
// conflict commute, and what is seen depends on the order of conflicting steps only, so every order
// that matters is still taken; see explore/reduction.h for the conditions. States know how far each
// core has come, so there are no cycles of states; a loop without end meets a limit.
//
// After a first fault the search goes on in the states behind it (a racing access sees all of a
// copy's data or none), and each fault is reported once per kind and pair of operations.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gridless/emulate/emulator.h"
#include "gridless/emulate/schedule.h"

namespace gridless::emulate {

struct ExploreOptions {
  int64_t max_states = 1'000'000;   // beyond: not exhausted
  int64_t max_steps = 100'000'000;  // instructions, over the whole search
  bool reduce = true;               // false: really every state; for tests of the reduction
  bool stop_at_first = false;       // after the first fault: then not exhausted, but not clean
};

struct ExploreFinding {
  std::string kind;
  std::string message;
  const ir::Op* first = nullptr;   // of a race: the one under way; else the op at fault, or null
  const ir::Op* second = nullptr;  // of a race: the one that meets it
  SourceLoc place;                 // where there is no op
  int cores[2] = {0, 0};           // that ran them
  std::vector<Choice> steps;       // the timing that led to it (Schedule::steps), and
  int launches = 1;                // in how many launches
  SourceLoc where() const;         // of the second if there is one
};

struct ExploreVerdict {
  std::vector<ExploreFinding> findings;
  bool exhausted = false;  // all timings were explored
  std::string stopped;     // which limit, if not
  int64_t states = 0, transitions = 0;
  int64_t ends = 0;  // states in which every core had returned

  bool clean() const { return exhausted && findings.empty(); }
  std::set<std::string> kinds() const;
};

// `inputs` holds per operand the bytes of all cores one after another. Errors: wrong number or size
// of inputs. A module that cannot run at all comes back with its diagnostics as findings.
Result<ExploreVerdict> explore(const ir::Module& module, const ir::Call& call, int cores,
                               std::span<const std::span<const std::byte>> inputs,
                               const ExploreOptions& options = {});

}  // namespace gridless::emulate
