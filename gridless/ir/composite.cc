#include "gridless/ir/composite.h"

#include <string>
#include <unordered_set>

#include "gridless/base/check.h"

namespace gridless::ir {

std::string_view composite_name(const Op& op) {
  if (op.code != OpCode::kTpuRegion) return {};
  return op.text_attr(kCompositeAttr);
}

std::vector<Value*> captured_values(const Op& region_op) {
  std::unordered_set<const Value*> inside, seen;
  std::vector<Value*> out;
  walk(region_op, [&](const Op& op) {
    if (&op != &region_op) {
      for (Value* v : op.operands) {
        if (!inside.contains(v) && seen.insert(v).second) out.push_back(v);
      }
      for (const auto& r : op.results) inside.insert(r.get());
    }
    for (const auto& region : op.regions)
      for (const auto& block : region->blocks)
        for (const auto& arg : block->args) inside.insert(arg.get());
  });
  return out;
}

std::vector<Value*> composite_operands(const Op& op) {
  const std::vector<Value*> captured = captured_values(op);
  const std::vector<int64_t>& order = op.ints_attr(kOrderAttr);
  GRIDLESS_CHECK(order.size() == captured.size(), "composite {}: {} operands, {} captured",
                 composite_name(op), order.size(), captured.size());
  std::vector<Value*> out;
  for (int64_t i : order) {
    GRIDLESS_CHECK(i >= 0 && i < static_cast<int64_t>(captured.size()));
    out.push_back(captured[static_cast<size_t>(i)]);
  }
  return out;
}

int64_t composite_int(const Op& op, std::string_view name) {
  return op.int_attr("gridless." + std::string(name));
}

double composite_real(const Op& op, std::string_view name) {
  const Attr* a = op.find("gridless." + std::string(name));
  GRIDLESS_CHECK(a && !(*a)->reals.empty(), "composite {} without {}", composite_name(op), name);
  return (*a)->reals[0];
}

}  // namespace gridless::ir
