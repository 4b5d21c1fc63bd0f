// From the IR to the TPU back end: what `gridless compile` does with a kernel that was built here.
#pragma once

#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/ir/call.h"
#include "gridless/tpu/compile_call.h"

namespace gridless::tpu {

// The same call in the terms of XLA. Operands are pinned where the call says so, and HBM ones
// there; other VMEM and SMEM ones are left to libtpu, which brings them to where the kernel's
// signature wants them.
CallSpec call_spec(const ir::Call& call);

// What the compiler is given for a kernel: the call, and the body as text, at the version that
// every libtpu takes, with the source locations of its ops. State that only its own core touches is
// updated without a copy (in_place.h).
struct KernelSource {
  CallSpec spec;
  std::string body;
};
KernelSource kernel_source(ir::Program program);

// What libtpu refuses is reported at the C++ line that built the op.
Result<CompiledCall> compile_kernel(Compiler& compiler, ir::Program program,
                                    const chips::Slice& slice);

}  // namespace gridless::tpu
