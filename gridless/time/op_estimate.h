// What an element-wise operation on vectors takes per register: the measured row of
// chips/op_costs.h, or for operations and formats without one what its class suggests.
#pragma once

#include "gridless/chips/op_costs.h"
#include "gridless/ir/module.h"

namespace gridless::time {

struct OpEstimate {
  chips::OpCost cost;
  bool measured = true;
};

OpEstimate estimate(const ir::Op& op);

}  // namespace gridless::time
