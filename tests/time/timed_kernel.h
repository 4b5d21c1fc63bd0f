// Kernels for the tests of the time model, and a machine of round numbers: 1 cycle is 1 ns, HBM 1
// byte per ns after 100 ns, a link 2 bytes per ns and 1000 ns.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/time/predict.h"

namespace gridless::time {

using namespace gridless::lang;  // NOLINT

inline chips::TimeParameters round_numbers() {
  chips::TimeParameters p;
  p.clock_ghz = 1;
  p.hbm_chip_rate = 2, p.hbm_core_rate = 1, p.hbm_copy_rate = 1;
  p.hbm_latency_ns = p.hbm_copy_latency_ns = 100;
  p.vmem_copy_rate = 4, p.vmem_copy_latency_ns = 10;
  p.ici_link_rate = p.ici_message_rate = 2, p.ici_latency_ns = 1000, p.ici_issue_ns = 0;
  p.die_rate = 8, p.die_latency_ns = 500, p.die_issue_ns = 0;
  p.launch_ns = 0;
  return p;
}

// Fails the test, and gives an empty prediction, where the kernel is wrong or does not end.
inline Prediction predict(Kernel& k, int cores, const chips::TimeParameters& p,
                          const chips::Slice& slice, std::vector<Span>* spans = nullptr,
                          std::span<const std::span<const std::byte>> operands = {}) {
  const auto program = k.finish();
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return {};
  }
  const auto kernel = TimedKernel::create(program->module, program->call);
  if (!kernel) {
    ADD_FAILURE() << to_string(kernel.error());
    return {};
  }
  auto out = kernel->predict(place(slice, cores), operands, {.parameters = p, .spans = spans});
  if (!out) {
    ADD_FAILURE() << to_string(out.error());
    return {};
  }
  return std::move(*out);
}

inline const chips::Slice kOneChip{.shape = {1, 1, 1}}, kFourChips{.shape = {2, 2, 1}};

}  // namespace gridless::time
