#include "gridless/cpu/kernels.h"

#include <cstdlib>
#include <memory>
#include <new>

#include "gridless/base/check.h"
#include "gridless/cpu/kernel_tables.h"

namespace gridless::cpu {
namespace {

struct AlignedDelete {
  void operator()(float* p) const { ::operator delete(p, std::align_val_t{64}); }
};

}  // namespace

const KernelTable& kernels(Isa isa) {
  GRIDLESS_CHECK(isa <= detected_isa(), "kernels for {} on a machine that has {}", isa_name(isa),
                 isa_name(detected_isa()));
  switch (isa) {
    case Isa::kBaseline:
      return scalar_kernels();
    case Isa::kAvx2:
      return avx2_kernels();
    case Isa::kAvx512:
    case Isa::kAvx512Vnni:  // its dot products round otherwise than the contracts: docs/cpu.md
      return avx512_kernels();
  }
  std::abort();
}

float* thread_scratch(int64_t floats) {
  thread_local std::unique_ptr<float, AlignedDelete> memory;
  thread_local int64_t size = 0;
  if (floats > size) {
    memory.reset();
    const int64_t wanted = floats + floats / 2;
    memory.reset(static_cast<float*>(
        ::operator new(static_cast<std::size_t>(wanted) * sizeof(float), std::align_val_t{64})));
    size = wanted;
  }
  return memory.get();
}

}  // namespace gridless::cpu
