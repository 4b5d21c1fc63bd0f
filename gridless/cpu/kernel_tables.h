// The tables behind kernels(), one per file of kernels, and the scratch memory they share.
#pragma once

#include "gridless/cpu/kernels.h"

namespace gridless::cpu {

const KernelTable& scalar_kernels();
const KernelTable& avx2_kernels();
const KernelTable& avx512_kernels();

// At least `floats` floats of the calling thread, 64-byte aligned, valid until the next call on
// this thread. The memory is kept for the thread's life, so it is had from the system a few times
// only.
float* thread_scratch(int64_t floats);

}  // namespace gridless::cpu
