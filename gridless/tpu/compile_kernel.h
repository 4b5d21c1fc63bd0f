// From the IR to the TPU back end: what `gridless compile` does with a kernel that was built here.
#pragma once

#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/ir/call.h"
#include "gridless/tpu/compile_call.h"

namespace gridless::tpu {

// The same call in the terms of XLA. HBM operands are pinned there; VMEM and SMEM ones are left to
// libtpu, which brings them to where the kernel's signature wants them.
CallSpec call_spec(const ir::Call& call);

// The other way: a call that was read from a call.json, in the terms of the IR. Operands are named
// in0, in1, ..., results out0, out1, ...
Result<ir::Call> ir_call(const CallSpec& spec);

// Prints the module at the version every libtpu takes, with the source locations of its ops, so
// that what libtpu refuses is reported at the C++ line that built the op.
Result<CompiledCall> compile_kernel(Compiler& compiler, const ir::Program& program,
                                    const chips::Slice& slice);

}  // namespace gridless::tpu
