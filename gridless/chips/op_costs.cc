#include "gridless/chips/op_costs.h"

#include <algorithm>

namespace gridless::chips {
namespace {

constexpr OpCost kCosts[] = {
#include "gridless/chips/tpu7x_op_costs.inc"
};

constexpr UnitCosts kUnits = {
#include "gridless/chips/tpu7x_unit_costs.inc"
};

}  // namespace

std::span<const OpCost> tpu7x_op_costs() { return kCosts; }
const UnitCosts& tpu7x_unit_costs() { return kUnits; }

const OpCost* find_op_cost(std::string_view op, std::string_view from, std::string_view to) {
  const auto it = std::ranges::find_if(
      kCosts, [&](const OpCost& c) { return c.op == op && c.from == from && c.to == to; });
  return it == std::end(kCosts) ? nullptr : &*it;
}

}  // namespace gridless::chips
