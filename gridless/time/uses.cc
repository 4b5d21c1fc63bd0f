#include "gridless/time/uses.h"

#include <algorithm>

namespace gridless::time {

Uses::Uses(const emulate::Program& program, const ir::Op& function) {
  for (size_t k = 0; k < program.code.size(); ++k) {
    const emulate::Instr& in = program.code[k];
    if (in.kind != emulate::Instr::Kind::kOp) continue;
    for (const ir::Value* v : in.op->operands) {
      const auto [it, fresh] = uses_.try_emplace(v, Range{.least = k, .most = k});
      it->second.least = std::min(it->second.least, k);
      it->second.most = std::max(it->second.most, k);
    }
  }
  ir::walk(function, [&](const ir::Op& op) {
    if (op.info().effect != ir::Effect::kControl) return;
    for (const ir::Value* v : op.operands) uses_[v].carried = true;
  });
}

bool Uses::outside(const ir::Value* v, size_t first, size_t last) const {
  const auto it = uses_.find(v);
  if (it == uses_.end()) return false;
  const Range& r = it->second;
  return r.carried || r.least < first || r.most >= last;
}

}  // namespace gridless::time
