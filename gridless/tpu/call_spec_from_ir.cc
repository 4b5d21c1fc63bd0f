#include "gridless/tpu/compile_kernel.h"

namespace gridless::tpu {
namespace {

Space space_of(const ir::CallArg& arg) {
  if (!arg.pinned) return arg.type.space() == ir::Space::kHbm ? Space::kHbm : Space::kAny;
  switch (*arg.pinned) {
    case ir::Space::kHbm:
      return Space::kHbm;
    case ir::Space::kVmem:
      return Space::kVmem;
    case ir::Space::kSmem:
      return Space::kSmem;
    default:
      return Space::kAny;
  }
}

OperandSpec operand(const ir::CallArg& arg) {
  return {
      .shape = arg.type.shape(), .dtype = ir::spelling(arg.type.elem()), .space = space_of(arg)};
}

}  // namespace

CallSpec call_spec(const ir::Call& call) {
  CallSpec spec;
  spec.kernel_name = call.name;
  for (const ir::CallArg& arg : call.operands) spec.operands.push_back(operand(arg));
  for (const ir::CallArg& arg : call.results) spec.results.push_back(operand(arg));
  for (const auto& [result, source] : call.aliases) {
    spec.aliases.push_back({.result = result, .operand = source});
  }
  spec.cores = call.cores;
  spec.has_communication = call.has_communication;
  spec.collective_id = call.collective_id;
  if (call.vmem_limit_bytes > 0) spec.vmem_limit_bytes = call.vmem_limit_bytes;
  spec.bounds_checks = call.bounds_checks;
  spec.semaphore_checks = call.semaphore_checks;
  return spec;
}

}  // namespace gridless::tpu
