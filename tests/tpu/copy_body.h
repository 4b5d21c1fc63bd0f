// A kernel body for tests: copies every operand to the result of the same number through DMAs,
// HBM to HBM or by way of a VMEM scratch.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "gridless/tpu/call_spec.h"

namespace gridless::tpu {

inline std::string copy_body(const CallSpec& spec, bool through_vmem = false) {
  const std::string semaphore = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>";
  const auto ref = [](const OperandSpec& o, const char* space) {
    return fmt::format("memref<{}x{}, #tpu.memory_space<{}>>", fmt::join(o.shape, "x"), o.dtype,
                       space);
  };
  const size_t n = spec.operands.size();
  std::string arguments, types, ops;
  for (size_t i = 0; i < 2 * n; ++i) {
    const std::string type = ref(spec.operands[i % n], "hbm");
    arguments += fmt::format("{}%a{}: {}", i ? ", " : "", i, type);
    types += (i ? ", " : "") + type;
  }
  const auto dma = [&](const std::string& from, const std::string& from_type, const std::string& to,
                       const std::string& to_type, size_t i) {
    ops += fmt::format(
        "    \"stable_mosaic.tpu.enqueue_dma\"({}, {}, %s{}) {{operandSegmentSizes = array<i32: 1, "
        "0, 1, 1, 0, 0>, priority = 0 : i32, strict_ordering = false}} : ({}, {}, {}) -> ()\n"
        "    \"stable_mosaic.tpu.wait_dma2\"(%s{}, {}, {}) {{operandSegmentSizes = array<i32: 1, "
        "1, "
        "1, 0, 0>, strict_ordering = false}} : ({}, {}, {}) -> ()\n",
        from, to, i, from_type, to_type, semaphore, i, from, to, semaphore, from_type, to_type);
  };
  for (size_t i = 0; i < n; ++i) {
    const std::string hbm = ref(spec.operands[i], "hbm"), vmem = ref(spec.operands[i], "vmem");
    const std::string from = fmt::format("%a{}", i), to = fmt::format("%a{}", n + i);
    ops += fmt::format("    %s{} = \"stable_mosaic.tpu.sem_alloc\"() : () -> ({})\n", i, semaphore);
    if (through_vmem) {
      const std::string buffer = fmt::format("%v{}", i);
      ops += fmt::format(
          "    {} = \"stable_mosaic.memref.alloca\"() {{operandSegmentSizes = array<i32: 0, 0>}} : "
          "() -> ({})\n",
          buffer, vmem);
      dma(from, hbm, buffer, vmem, i);
      dma(buffer, vmem, to, hbm, i);
    } else {
      dma(from, hbm, to, hbm, i);
    }
  }
  return fmt::format(
      "\"builtin.module\"() ({{\n \"stable_mosaic.func.func\"() ({{\n ^bb0({}):\n"
      "   \"stable_mosaic.tpu.region\"() ({{\n{}    \"stable_mosaic.tpu.yield\"() : () -> ()\n"
      "   }}) : () -> ()\n   \"stable_mosaic.func.return\"() : () -> ()\n"
      " }}) {{dimension_semantics = [], function_type = ({}) -> (), scalar_prefetch = 0 : i64, "
      "scratch_operands = 0 : i64, sym_name = \"main\", tpu.core_type = #tpu.core_type<tc>}} : () "
      "-> "
      "()\n}}) {{stable_mosaic.version = 13 : i64}} : () -> ()\n",
      arguments, ops, types);
}

inline CallSpec copy_spec(std::vector<OperandSpec> operands, int cores = 1) {
  return {.kernel_name = "copy", .operands = operands, .results = operands, .cores = cores};
}

}  // namespace gridless::tpu
