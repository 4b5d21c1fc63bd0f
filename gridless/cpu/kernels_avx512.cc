// The vector kernels for avx512. Everything but the table is in an anonymous namespace: a
// function emitted here for the wider instruction set must not be the one the linker keeps for all.
// GCC 12's own headers leave operands undefined on purpose, and it then warns about them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include <cstdint>

#include "gridless/cpu/kernel_tables.h"

namespace gridless::cpu {
namespace {

#include "gridless/cpu/simd_avx512.inl"
// The vocabulary comes first.
#include "gridless/cpu/dot.inl"
#include "gridless/cpu/elementwise.inl"
// exp() is in elementwise.inl.
#include "gridless/cpu/attention.inl"
#include "gridless/cpu/gated_types.inl"
// Types, then inner loops, then what uses both.
#include "gridless/cpu/gated_vectors.inl"
// (One block each: includes are sorted within blocks.)
#include "gridless/cpu/gated.inl"

}  // namespace

const KernelTable& avx512_kernels() {
  static constexpr KernelTable table = {dot<Bf16>,     dot<Q8>,      dot<Q4>,     dot<Q4m>,
                                        rms_norm,      qkv_rope,     kv_append,   decode_attention,
                                        swiglu,        add_into,     topk_insert, topk_final,
                                        qkv_norm_rope, gate_context, gated_delta};
  return table;
}

}  // namespace gridless::cpu
