// CallSpec: everything about one kernel call that is not in its body. With the body text it is the
// whole input of the TPU back end (stablehlo.h turns the two into a program).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::tpu {

// Where an operand or result of the kernel lives when the kernel starts.
enum class Space {
  kAny,   // XLA chooses; small operands may be moved into VMEM before the kernel runs
  kHbm,   // pinned. A #tpu.memory_space<hbm> argument alone does not pin its operand.
  kVmem,  // XLA copies it there
  kSmem,  // scalars; XLA copies it there
};
std::string_view space_name(Space space);  // "any", "hbm", "vmem", "smem"

// Shape and type as the kernel sees them on one core.
struct OperandSpec {
  std::vector<int64_t> shape;
  std::string dtype;  // the MLIR name: f32, bf16, i32, ui32, f8E4M3FN, f4E2M1FN, ...
  Space space = Space::kAny;
  // How it lies in a device's memory, in XLA's words; known once it has been compiled.
  std::string device_layout;
};

// Result `result` is written into the buffer of operand `operand`: same shape and type, no copy.
struct Alias {
  int result = 0;
  int operand = 0;
  // The kernel has no argument for the result and writes through the operand (in_place.h).
  bool through_operand = false;
};

struct CallSpec {
  std::string kernel_name;
  std::vector<OperandSpec> operands;  // the leading memref arguments of the kernel function
  std::vector<OperandSpec> results;   // the memref arguments behind them; scratch is not listed
  std::vector<Alias> aliases;
  int cores = 1;  // each with its own operands and results of the shapes above
  // Some DMA or signal of the body names another core.
  bool has_communication = false;
  // Set if and only if the body uses the barrier semaphore (tpu.sem_barrier).
  std::optional<int> collective_id;
  // VMEM that the kernel may allocate. Without it libtpu allows 32 MiB.
  std::optional<int64_t> vmem_limit_bytes;
  // Run-time checks of DMA bounds (9 cycles per DMA) and of semaphores (7 cycles each).
  bool bounds_checks = true;
  bool semaphore_checks = true;
};

// The results that the kernel has an argument for, in order: those not written through an operand.
std::vector<int> kernel_results(const CallSpec& spec);

// Bytes of one core's operand, unpadded: the packed size, sub-byte types rounded up as a whole.
Result<int64_t> byte_size(const OperandSpec& operand);

// Shapes not empty and positive, types known, aliases in range with equal shape and type, one alias
// per operand.
Result<void> validate(const CallSpec& spec);

}  // namespace gridless::tpu
