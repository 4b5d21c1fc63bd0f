// What a kernel needs of the chip's memories, and whether the chip has it.
#pragma once

#include "gridless/emulate/kernel.h"

namespace gridless::emulate {

// Peaks over the program, bytes of one core. Arrays are padded to the chip's tiles: the minor
// dimension to 128 lanes, the one before it to 8 rows of 32 bits (or the next power of two, if
// fewer). Blocks of grid windows count twice: the pipeline holds two.
struct Usage {
  int64_t vmem_bytes = 0, smem_bytes = 0, semaphores = 0;
  // The allocations that reach the peaks; null: the arguments alone.
  const ir::Op *vmem_op = nullptr, *smem_op = nullptr, *semaphore_op = nullptr;
};
Usage usage(const Kernel& kernel);

// So far beyond the chip that a run would only take this machine's memory.
bool far_beyond_chip(const Usage& usage);

// Findings of kind capacity.
Diagnostics check_capacity(const Kernel& kernel, const Usage& usage);

}  // namespace gridless::emulate
