// Runs of scalars only: what a kernel does - its control flow, copies, signals, waits and accesses
// - without what its vectors hold. So a step of a model at its real size is checked without its
// weights, and an operand of a terabyte costs nothing.
//
// Scalars are real where they are known: constants, loop counters, arithmetic on them, and elements
// of memory that scalars were stored to or copied to from operands that are given. Data are kept
// exactly for the sites that a scalar load may reach, directly or through copies. A scalar that
// comes from a vector, or from memory without data, counts as zero (a condition: false) and says so
// (Scalar::origin). Such a run needs a Recorder (the checker) or a Gate (the time model).
#pragma once

#include "gridless/emulate/kernel.h"
#include "gridless/emulate/machine.h"

namespace gridless::emulate {

// Makes `kernel` one that runs on scalars only: arithmetic on vectors is dropped from its body, and
// keeps_data is filled.
void drop_vectors(Kernel& kernel);

// The memory of a core for such a kernel. `operands`: per operand of the call, its bytes; empty:
// not given. They must outlive the run, which does not write to them.
void set_up_scalars(const Kernel& kernel, std::span<const std::span<const std::byte>> operands,
                    Core& core);

}  // namespace gridless::emulate
