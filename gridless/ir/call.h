// Call: how a kernel is called - its operands, results and what the caller must provide. Together
// with the module it is everything that running, checking and compiling a kernel needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::ir {

struct CallArg {
  std::string name;
  Type type;  // the memref of the kernel's argument
  // The memory that the call, not the kernel, puts it in before the kernel starts (XLA's colours).
  std::optional<Space> pinned = {};
};

// Virtual cores that a call may be for: more than the largest slice that a kernel here runs on.
inline constexpr int kMostCores = 128;

struct Call {
  std::string name;               // kernel name
  std::vector<CallArg> operands;  // in the order of the function's leading arguments
  std::vector<CallArg> results;   // follow the operands
  // Result `first` lives in the buffer of operand `second` (in-place state).
  std::vector<std::pair<int, int>> aliases;
  int cores = 1;                     // virtual cores the program was written for
  std::optional<int> collective_id;  // set exactly when the module has tpu.sem_barrier
  bool has_communication = false;    // some DMA or signal names a device
  // The compiler puts a barrier of all cores before the kernel: what libtpu does for one that
  // communicates and has no collective_id, unless the call says skip_device_barrier.
  bool device_barrier = false;
  int64_t vmem_limit_bytes = 0;  // 0: the compiler's default of 32 MiB
  // The compiler's run-time checks of DMA bounds and of semaphores.
  bool bounds_checks = true, semaphore_checks = true;
};

// A kernel ready to run: what lang::Kernel::finish() returns.
struct Program {
  Module module;
  Call call;
  Diagnostics warnings =
      {};  // what the builder found suspicious; the program is valid nevertheless
};

}  // namespace gridless::ir
