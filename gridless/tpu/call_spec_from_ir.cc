#include "gridless/tpu/compile_kernel.h"

namespace gridless::tpu {
namespace {

OperandSpec operand(const ir::CallArg& arg) {
  return {.shape = arg.type.shape(),
          .dtype = ir::spelling(arg.type.elem()),
          .space = arg.type.space() == ir::Space::kHbm ? Space::kHbm : Space::kAny};
}

ir::Space space_in_ir(Space space) {
  switch (space) {
    case Space::kHbm:
      return ir::Space::kHbm;
    case Space::kVmem:
      return ir::Space::kVmem;
    case Space::kSmem:
      return ir::Space::kSmem;
    case Space::kAny:
      break;
  }
  return ir::Space::kAny;
}

Result<std::vector<ir::CallArg>> ir_args(const std::vector<OperandSpec>& specs,
                                         const std::string& prefix) {
  std::vector<ir::CallArg> args;
  for (const OperandSpec& spec : specs) {
    const auto elem = ir::elem_from_spelling(spec.dtype);
    if (!elem) return input_error("call.json: unknown dtype \"{}\"", spec.dtype);
    args.push_back({fmt::format("{}{}", prefix, args.size()),
                    ir::Type::memref(spec.shape, *elem, space_in_ir(spec.space))});
  }
  return args;
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
  return spec;
}

Result<ir::Call> ir_call(const CallSpec& spec) {
  ir::Call call;
  call.name = spec.kernel_name;
  TRY(call.operands, ir_args(spec.operands, "in"));
  TRY(call.results, ir_args(spec.results, "out"));
  for (const Alias& alias : spec.aliases) call.aliases.emplace_back(alias.result, alias.operand);
  call.cores = spec.cores;
  call.has_communication = spec.has_communication;
  call.collective_id = spec.collective_id;
  call.vmem_limit_bytes = spec.vmem_limit_bytes.value_or(0);
  return call;
}

}  // namespace gridless::tpu
