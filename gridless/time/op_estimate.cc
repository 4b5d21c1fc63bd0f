#include "gridless/time/op_estimate.h"

namespace gridless::time {
namespace {

chips::OpCost assumed(ir::Cost cost) {
  const chips::UnitCosts& units = chips::tpu7x_unit_costs();
  switch (cost) {
    case ir::Cost::kEup:
      return {"", "", "", 4, 1, 0, 20};
    case ir::Cost::kXlu:
      return {"", "", "", 0, 0, 1, static_cast<float>(units.lane_permute_latency)};
    case ir::Cost::kFree:
      return {"", "", "", 0, 0, 0, 0};
    default:
      return {"", "", "", 1, 0, 0, static_cast<float>(units.valu_latency)};
  }
}

}  // namespace

OpEstimate estimate(const ir::Op& op) {
  const ir::Type from = (op.operands.empty() ? op.result() : op.operands[0])->type;
  const chips::OpCost* row = chips::find_op_cost(op.info().name, ir::spelling(from.elem()),
                                                 ir::spelling(op.result()->type.elem()));
  if (row) return {*row};
  return {assumed(op.info().cost), op.info().cost == ir::Cost::kFree};
}

}  // namespace gridless::time
