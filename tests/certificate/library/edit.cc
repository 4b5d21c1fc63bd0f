#include "tests/certificate/library/edit.h"

#include <algorithm>

namespace gridless::certificate {

using ir::Op;
using ir::OpCode;
using ir::Value;

namespace {

void collect(Op& op, std::vector<Op*>& out) {
  out.push_back(&op);
  for (const auto& region : op.regions)
    for (const auto& block : region->blocks)
      for (const auto& inner : block->ops) collect(*inner, out);
}

bool does_something(const Op& op) {
  switch (op.info().effect) {
    case ir::Effect::kPure:
    case ir::Effect::kView:
    case ir::Effect::kAlloc:
    case ir::Effect::kTrace:
      return false;
    default:
      return true;
  }
}

bool is_terminator(const Op& op) { return &op == op.parent->ops.back().get(); }

}  // namespace

std::vector<Op*> ops_of(ir::Module& module) {
  std::vector<Op*> out;
  if (Op* entry = module.entry()) collect(*entry, out);
  return out;
}

size_t place_of(const Op& op) {
  const auto& ops = op.parent->ops;
  const auto found = std::ranges::find(ops, &op, [](const auto& p) { return p.get(); });
  return static_cast<size_t>(found - ops.begin());
}

Op* neighbour(const Op& op, int step) {
  const auto& ops = op.parent->ops;
  for (size_t k = place_of(op) + static_cast<size_t>(step); k < ops.size();
       k += static_cast<size_t>(step)) {
    if (is_terminator(*ops[k])) return nullptr;
    if (does_something(*ops[k])) return ops[k].get();
  }
  return nullptr;
}

void erase(Op& op) {
  auto& ops = op.parent->ops;
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(place_of(op)));
}

void move_to(Op& op, size_t place) {
  auto& ops = op.parent->ops;
  const auto from = ops.begin() + static_cast<std::ptrdiff_t>(place_of(op));
  const auto to = ops.begin() + static_cast<std::ptrdiff_t>(place);
  if (from < to) {
    std::rotate(from, from + 1, to + 1);
  } else {
    std::rotate(to, from, from + 1);
  }
}

void duplicate(Op& op) {
  const size_t place = place_of(op);
  Op* copy = ir::append_op(*op.parent, op.code, op.operands, {}, op.attrs, op.loc);
  move_to(*copy, place + 1);
}

Value* insert_before(Op& op, OpCode code, std::vector<Value*> operands, ir::Type result,
                     std::vector<ir::NamedAttr> attrs) {
  const size_t place = place_of(op);
  Op* made =
      ir::append_op(*op.parent, code, std::move(operands), {result}, std::move(attrs), op.loc);
  move_to(*made, place);
  return made->result();
}

Value* constant_before(Op& op, ir::Type type, int64_t value) {
  return insert_before(op, OpCode::kArithConstant, {}, type,
                       {{"value", ir::Attr::integer(value, type)}});
}

Value* binary_before(Op& op, OpCode code, Value* a, Value* b) {
  return insert_before(op, code, {a, b}, a->type, {});
}

std::vector<Value*> others_visible(const Op& op, const Value* like) {
  std::vector<Value*> out;
  const auto offer = [&](Value* v) {
    if (v != like && v->type == like->type) out.push_back(v);
  };
  for (const Op* at = &op; at->parent; at = at->parent->parent->parent) {
    const ir::Block& block = *at->parent;
    const size_t end = place_of(*at);
    for (size_t k = end; k-- > 0;)
      for (const auto& r : block.ops[k]->results) offer(r.get());
    for (const auto& arg : block.args) offer(arg.get());
    if (at->parent->parent->parent->code == OpCode::kFuncFunc) break;
  }
  return out;
}

const Value* root(const Value* v) {
  while (v->op && v->op->info().effect == ir::Effect::kView) v = v->op->operands[0];
  return v;
}

Segment segment(const Op& op, size_t i) {
  const auto& sizes = op.ints_attr("operandSegmentSizes");
  Segment s;
  if (i >= sizes.size()) return s;
  for (size_t k = 0; k < i; ++k) s.begin += static_cast<size_t>(sizes[k]);
  s.count = static_cast<size_t>(sizes[i]);
  return s;
}

}  // namespace gridless::certificate
