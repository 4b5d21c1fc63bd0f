// State updated in place by kernels that communicate.
//
// XLA knows an in-place update as a result that lives in the buffer of an operand. For a kernel
// without communication that costs nothing. The results of a kernel that sends to other cores,
// however, get memory of XLA's own at the same address on every core, since peers may write into
// them; so a result that lives in an operand is copied there before the kernel and back behind it:
// the whole KV cache, in every launch. Neither donation, nor side-effect marks, nor any flag of
// libtpu 0.0.51 avoids it.
//
// State that only its own core touches does not need that. Its kernel writes through the operand
// and has no argument for the result; the program returns the operand as that result, still in the
// donated buffer. XLA then takes the operand for one that is only read, which is sound here: no
// other instruction of the program reads it, and it is pinned to HBM, where it lies.
#pragma once

#include "gridless/ir/call.h"
#include "gridless/tpu/call_spec.h"

namespace gridless::tpu {

// Rewrites the kernel for every alias of `spec` (which is call_spec(program.call)) that may be
// written through its operand, and marks it in `spec`. Left alone: kernels without communication,
// with a grid, state that is not in HBM, and results that are the target of a copy from another
// core.
void write_through_operands(ir::Program& program, CallSpec& spec);

}  // namespace gridless::tpu
