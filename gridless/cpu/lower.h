// Lowering: a kernel and the memory it will run on -> one tape per virtual core.
//
// It walks the program as a core would run it and works out all that does not depend on data:
//   1. scalar arithmetic and refs on known operands are computed now (with the emulator's
//   functions);
//   2. loops with known bounds unroll, branches with known conditions vanish, up to a stated cap of
//   steps;
//      loops over data (rows with run-time bounds, pages) become jumps;
//   3. a copy of a read-only operand into a whole part of VMEM becomes a *view*: reads of that part
//   are
//      redirected to the operand, nothing is copied (weights are used in place). A write to the
//      part, or data-dependent control flow, makes the copy after all;
//   4. a composite with a hand kernel becomes one call with resolved pointers;
//   5. everything else becomes a generic step.
// Semaphores stay: they are the only synchronisation between virtual cores.
#pragma once

#include <expected>

#include "gridless/cpu/tape.h"
#include "gridless/emulate/kernel.h"

namespace gridless::cpu {

struct LowerOptions {
  // Steps that unrolling may produce for one core; loops beyond become jumps.
  int64_t max_unrolled_steps = 1'000'000;
  bool hand_kernels = true;  // false: bodies of composites, for tests
};

// `machine` has all cores with their buffers by site in place; they must not move afterwards.
// Lowers for core `core`.
std::expected<Tape, Diagnostics> lower(const emulate::Kernel& kernel, emulate::Machine& machine,
                                       int core, const KernelTable& kernels,
                                       const LowerOptions& options);

}  // namespace gridless::cpu
