#include "gridless/emulate/eval.h"

#include "gridless/emulate/pure_ops.h"

namespace gridless::emulate {

RtValue PureOps::run(const ir::Op& op) const {
  switch (op.code) {
#define GRIDLESS_IF_kPure(id) \
  case ir::OpCode::k##id:     \
    return id(op);
#define GRIDLESS_CASE(id, name, least, most, results, regions, rule, effect, ...) \
  GRIDLESS_IF_##effect(id)
    GRIDLESS_OPS(GRIDLESS_CASE)
#undef GRIDLESS_CASE
#undef GRIDLESS_IF_kPure
    default:
      break;
  }
  GRIDLESS_CHECK(false, "{} is not pure", op.info().name);
}

bool is_evaluable(ir::OpCode code) {
  return ir::info(code).effect == ir::Effect::kPure && code != ir::OpCode::kTpuDeviceId &&
         code != ir::OpCode::kTpuIterationBound;
}

std::expected<RtValue, Diagnostic> eval_pure(const ir::Op& op, Args args) {
  try {
    return PureOps{args}.run(op);
  } catch (Fault& f) {
    return std::unexpected(std::move(f.diagnostic));
  }
}

RtValue PureOps::TpuDeviceId(const ir::Op& op) const {
  fault(op, "invalid_ir", "tpu.device_id has a value only on a running core");
}
RtValue PureOps::TpuIterationBound(const ir::Op& op) const {
  fault(op, "invalid_ir", "tpu.iteration_bound has a value only on a running core");
}

}  // namespace gridless::emulate
