// Tape: a kernel lowered for one virtual core. A flat list of steps with jumps; everything that is
// known when the kernel is loaded (scalars, refs, unrolled loops) has been worked out, so a step is
// a call of a hand kernel, a memcpy, a semaphore update, or - for ops without a faster form - the
// op's function of the emulator's library on the slots of a frame.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "gridless/cpu/kernels.h"
#include "gridless/emulate/core_ops.h"

namespace gridless::cpu {

struct CoreRun;

enum class Flow : uint8_t {
  kNext,     // go on with the next step
  kJump,     // pc has been set
  kBlocked,  // not executed; the core waits for a semaphore
};

using Step = std::function<Flow(CoreRun&)>;

// What a blocked core waits for, for the report of a hang.
struct Blocked {
  const ir::Op* op = nullptr;
  int64_t have = 0, need = 0;
};

struct Tape {
  std::vector<Step> steps;
  std::vector<const ir::Op*> ops;       // per step, the op it came from
  emulate::Program program;             // instructions of the generic steps and their slot lists
  std::vector<emulate::RtValue> slots;  // at the start: known values are in it
  int64_t hand_kernels = 0, copies = 0, views = 0,
          generic = 0;  // steps by kind; views cost nothing
};

// A core while it runs.
struct CoreRun {
  const Tape* tape = nullptr;
  emulate::Machine* machine = nullptr;
  emulate::Core* core = nullptr;
  const KernelTable* kernels = nullptr;
  // Tells the worker of another core that one of its semaphores has changed.
  const std::function<void(int core)>* notify = nullptr;
  emulate::Frame frame;
  size_t pc = 0;
  Blocked blocked;
  int64_t steps = 0;
};

}  // namespace gridless::cpu
