#include "gridless/cpu/lowering.h"
#include "gridless/ir/composite.h"

namespace gridless::cpu {

namespace {

// The value that `ref` is a view of, as far as the views are made inside `region`.
const Value* base_in(const Op& region, const Value* ref) {
  const auto inside = [&](const Op* op) {
    for (const ir::Block* b = op ? op->parent : nullptr; b; b = b->parent->parent->parent) {
      if (b->parent->parent == &region) return true;
      if (!b->parent->parent) break;
    }
    return false;
  };
  while (inside(ref->op) && ref->op->info().effect == ir::Effect::kView) ref = ref->op->operands[0];
  return ref;
}

}  // namespace

std::unordered_set<const Value*> Lowering::written_by(const Op& region) {
  std::unordered_set<const Value*> out;
  ir::walk(region, [&](const Op& op) {
    if (op.code == OpCode::kTpuEnqueueDma) out.insert(base_in(region, dma_operands(op).dst));
    const ir::Effect e = op.info().effect;
    if (e != ir::Effect::kWriteRef && e != ir::Effect::kReadWriteRef) return;
    for (const Value* v : op.operands) {
      if (v->type.is_memref()) out.insert(base_in(region, v));
    }
  });
  return out;
}

bool Lowering::composite(const Op& op) {
  // The same op comes back in every round of an unrolled loop, and its body may be long.
  const auto [it, fresh] = contracts_.try_emplace(&op);
  if (fresh) it->second = {ir::composite_operands(op), written_by(op)};
  const auto& [values, written] = it->second;
  std::vector<BoundOperand> bound(values.size());
  std::vector<int32_t> slots(values.size(), -1);
  bool all_known = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value* v = values[i];
    if (!known(v)) {
      all_known = false;
      slots[i] = slot(v);
      if (v->type.is_memref()) materialise_behind(v);
    } else if (v->type.is_memref()) {
      if (written.contains(v)) materialise(view(v));
      bound[i].view = resolve(view(v));
    } else {
      bound[i].integer = integer(v);
    }
  }
  if (std::optional<KernelCall> call =
          all_known ? bind_kernel(op, bound, kernels_) : std::nullopt) {
    ++tape_.hand_kernels;
    emit([call = std::move(*call)](CoreRun&) {
      call();
      return Flow::kNext;
    });
    return true;
  }
  if (all_known) return false;  // a ref with gaps
  for (size_t i = 0; i < values.size(); ++i) {
    // Whether a ref that is not known yet has gaps cannot be asked later: whole rows of a buffer
    // have none.
    if (!values[i]->type.is_memref()) continue;
    if (slots[i] >= 0 ? !whole_rows(values[i]) : !is_linear(bound[i].view)) return false;
  }
  ++tape_.hand_kernels;
  emit([&op, bound = std::move(bound), slots = std::move(slots)](CoreRun& run) mutable {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] < 0) continue;
      const RtValue& v = run.frame.slots[static_cast<size_t>(slots[i])];
      if (std::holds_alternative<emulate::Ref>(v)) {
        bound[i].view = emulate::view(v);
      } else {
        bound[i].integer = emulate::scalar(v).i;
      }
    }
    std::optional<KernelCall> call = bind_kernel(op, bound, *run.kernels);
    GRIDLESS_CHECK(call.has_value(), "composite {}", ir::composite_name(op));
    (*call)();
    return Flow::kNext;
  });
  return true;
}

bool Lowering::whole_rows(const Value* v) const {
  const Op* op = v->op;
  if (!op) return true;
  if (op->code == OpCode::kMemrefAlloca) return true;
  if (op->code == OpCode::kTpuMemrefSqueeze) return whole_rows(op->operands[0]);
  if (op->code != OpCode::kTpuMemrefSlice) return false;
  const ir::Shape &from = op->operands[0]->type.shape(), &to = v->type.shape();
  size_t d = 0;
  while (d < from.size() && to[d] == 1) ++d;
  for (++d; d < from.size(); ++d) {
    if (from[d] != to[d]) return false;
  }
  return whole_rows(op->operands[0]);
}

}  // namespace gridless::cpu
