#include "tests/certificate/library/mutate.h"

#include <fmt/format.h>

#include <algorithm>

#include "gridless/base/check.h"
#include "tests/certificate/library/edit.h"

namespace gridless::certificate {

using ir::Op;
using ir::OpCode;
using ir::Value;

namespace {

bool is_wait(const Op& op) {
  return op.code == OpCode::kTpuWaitDma || op.code == OpCode::kTpuSemWait;
}
bool is_signal(const Op& op) { return op.code == OpCode::kTpuSemSignal; }
bool is_copy(const Op& op) { return op.code == OpCode::kTpuEnqueueDma; }
bool is_event(const Op& op) { return is_wait(op) || is_signal(op) || is_copy(op); }

// The operand that names the semaphore which counts.
size_t semaphore_operand(const Op& op) {
  if (op.code == OpCode::kTpuSemWait || is_signal(op)) return 0;
  const bool sent = op.code == OpCode::kTpuWaitDma && !op.bool_attr_or("wait_target", true) &&
                    segment(op, 1).count > 0;
  return segment(op, sent ? 1 : 3).begin;
}

// Another semaphore: one of another allocation if there is one, else any other value.
std::vector<Value*> other_semaphores(const Op& op) {
  const Value* now = op.operands[semaphore_operand(op)];
  std::vector<Value*> out;
  for (Value* v : others_visible(op, now)) {
    const bool seen = std::ranges::any_of(out, [&](Value* o) { return root(o) == root(v); });
    if (root(v) != root(now) && !seen) out.push_back(v);
  }
  if (out.size() > 2) out.resize(2);
  return out;
}

// The operand with the device, or 0: none.
size_t device_operand(const Op& op) {
  const size_t index = is_copy(op) ? 4 : 2;
  const Segment s = segment(op, index);
  return s.count > 0 ? s.begin : 0;
}

// Dimensions of a slice that take one of several, or one block of several.
std::vector<size_t> sliced(const Op& op) {
  std::vector<size_t> out;
  const ir::Shape &from = op.operands[0]->type.shape(), &to = op.result()->type.shape();
  for (size_t d = 0; d < to.size(); ++d)
    if (to[d] > 0 && from[d] > to[d]) out.push_back(d);
  return out;
}

int64_t slots(const Op& op) {
  const ir::Shape &from = op.operands[0]->type.shape(), &to = op.result()->type.shape();
  return !to.empty() && to[0] == 1 && from[0] > 1 && from[0] <= 8 ? from[0] : 0;
}

std::vector<Op*> users_of_barrier(ir::Module& module, const Op& barrier) {
  std::vector<Op*> out;
  for (Op* op : ops_of(module))
    if (is_event(*op) && root(op->operands[semaphore_operand(*op)]) == barrier.result())
      out.push_back(op);
  return out;
}

bool half_possible(const Op& op) {
  return op.code == OpCode::kTpuWaitDma && op.operands[0]->type.rank() > 0 &&
         op.operands[0]->type.shape()[0] % 2 == 0 && op.operands[0]->type->layout.empty();
}

// How many ways there are to apply `m` to `op`.
int ways(ir::Module& module, Operator m, const Op& op) {
  switch (m) {
    case Operator::kDropWait:
      return is_wait(op);
    case Operator::kOtherSemaphore:
      return is_event(op) ? static_cast<int>(other_semaphores(op).size()) : 0;
    case Operator::kOtherSlot:
      if (op.code != OpCode::kTpuMemrefSlice) return 0;
      return slots(op) == 0 ? 0 : slots(op) == 2 ? 1 : 2;
    case Operator::kMoveEarlier: {
      if (!is_event(op)) return 0;
      const Op* before = neighbour(op, -1);
      if (!before) return 0;
      const size_t place = place_of(*before);
      return std::ranges::none_of(op.operands, [&](const Value* v) {
        return v->op && v->op->parent == op.parent && place_of(*v->op) >= place;
      });
    }
    case Operator::kMoveLater:
      return is_event(op) && neighbour(op, 1) != nullptr;
    case Operator::kMoveToEnd:
      return is_wait(op) && neighbour(op, 1) != nullptr;
    case Operator::kOtherPeer:
      return (is_copy(op) || is_signal(op)) && device_operand(op) > 0 ? 2 : 0;
    case Operator::kAmount:
      return is_signal(op) || op.code == OpCode::kTpuSemWait ? 2 : 0;
    case Operator::kBytes:
      return half_possible(op);
    case Operator::kBound:
      return op.code == OpCode::kScfFor ? 3 : 0;
    case Operator::kDouble:
      return is_event(op);
    case Operator::kLoseSignal:
      return is_signal(op);
    case Operator::kDropCopy:
      return is_copy(op);
    case Operator::kDropBarrier:
      return op.code == OpCode::kTpuSemBarrier && !users_of_barrier(module, op).empty();
    case Operator::kShrink:
      return op.code == OpCode::kMemrefAlloca && op.result()->type.rank() > 0 &&
             op.result()->type.shape()[0] > 1;
    case Operator::kShift:
      return op.code == OpCode::kTpuMemrefSlice ? static_cast<int>(sliced(op).size()) : 0;
  }
  return 0;
}

void change_operand(Op& op, size_t k, OpCode code, int64_t by) {
  Value* v = op.operands[k];
  op.operands[k] = binary_before(op, code, v, constant_before(op, v->type, by));
}

void other_slot(Op& op, int variant) {
  Value* v = op.operands[1];
  const int64_t n = slots(op);
  if (variant == 0) {  // the mirror image
    op.operands[1] = binary_before(op, OpCode::kArithSubi, constant_before(op, v->type, n - 1), v);
    return;
  }
  change_operand(op, 1, OpCode::kArithAddi, 1);  // the next one
  change_operand(op, 1, OpCode::kArithRemsi, n);
}

void other_peer(Op& op, int variant, int cores) {
  const size_t k = device_operand(op);
  change_operand(op, k, OpCode::kArithAddi, variant == 0 ? 1 : cores - 1);
  change_operand(op, k, OpCode::kArithRemsi, cores);
}

// The wait names only the first half of its refs.
void half_the_bytes(Op& op) {
  for (const size_t k : {segment(op, 0).begin, segment(op, 2).begin}) {
    Value* ref = op.operands[k];
    const ir::Type type = ref->type;
    ir::Shape half = type.shape();
    half[0] /= 2;
    std::vector<Value*> operands{ref};
    const auto rank = static_cast<int64_t>(half.size());
    for (int64_t d = 0; d < rank; ++d)
      operands.push_back(constant_before(op, ir::Type::scalar(ir::Elem::kI32), 0));
    op.operands[k] = insert_before(
        op, OpCode::kTpuMemrefSlice, std::move(operands),
        ir::Type::memref(half, type.elem(), type.space()),
        {{"operandSegmentSizes", ir::Attr::dense_array(ir::Elem::kI32, {1, rank, 0})}});
  }
}

void shrink(Op& op) {
  Value& v = *op.results[0];
  ir::Shape shape = v.type.shape();
  --shape[0];
  v.type = ir::Type::memref(shape, v.type.elem(), v.type.space(), v.type->layout);
}

}  // namespace

const char* name(Operator op) {
  constexpr const char* kNames[kOperators] = {
      "dropped wait", "other semaphore", "other slot", "earlier",      "later",   "wait at end",
      "other peer",   "amount +-1",      "half wait",  "loop +-1",     "doubled", "lost signal",
      "dropped copy", "no barrier",      "shrunk",     "shifted slice"};
  return kNames[static_cast<size_t>(op)];
}

const char* why_equivalent(Operator op) {
  switch (op) {
    case Operator::kOtherSlot:
    case Operator::kShift:
      return "only a wait names the slice, which counts bytes and not addresses; or what it holds "
             "is "
             "overwritten, or equal";
    case Operator::kMoveEarlier:
    case Operator::kMoveLater:
    case Operator::kMoveToEnd:
      return "the steps that it passes touch nothing that it orders";
    case Operator::kOtherPeer:
      return "each core gets as many signals as before, and what they order does not need this one";
    case Operator::kBound:
      return "a round that changes nothing";
    default:
      return "code that this data does not reach";
  }
}

std::vector<Mutation> mutations(ir::Module& module) {
  std::vector<Mutation> out;
  const std::vector<Op*> ops = ops_of(module);
  for (size_t place = 0; place < ops.size(); ++place) {
    const Op& op = *ops[place];
    if (op.code == OpCode::kFuncFunc) continue;
    for (int m = 0; m < kOperators; ++m)
      for (int v = 0; v < ways(module, static_cast<Operator>(m), op); ++v)
        out.push_back({static_cast<Operator>(m), place, v,
                       fmt::format("{} at {}", op.info().name, op.loc.str())});
  }
  return out;
}

void apply(ir::Module& module, const Mutation& mutation, int cores) {
  Op& op = *ops_of(module).at(mutation.place);
  GRIDLESS_CHECK(mutation.variant < ways(module, mutation.op, op));
  switch (mutation.op) {
    case Operator::kDropWait:
    case Operator::kLoseSignal:
    case Operator::kDropCopy:
      return erase(op);
    case Operator::kOtherSemaphore:
      op.operands[semaphore_operand(op)] =
          other_semaphores(op)[static_cast<size_t>(mutation.variant)];
      return;
    case Operator::kOtherSlot:
      return other_slot(op, mutation.variant);
    case Operator::kMoveEarlier:
      return move_to(op, place_of(*neighbour(op, -1)));
    case Operator::kMoveLater:
      return move_to(op, place_of(*neighbour(op, 1)));
    case Operator::kMoveToEnd:
      return move_to(op, op.parent->ops.size() - 2);
    case Operator::kOtherPeer:
      return other_peer(op, mutation.variant, cores);
    case Operator::kAmount:
      return change_operand(op, 1, OpCode::kArithAddi, mutation.variant == 0 ? 1 : -1);
    case Operator::kBytes:
      return half_the_bytes(op);
    case Operator::kBound:
      if (mutation.variant < 2)
        return change_operand(op, 1, OpCode::kArithAddi, mutation.variant == 0 ? 1 : -1);
      return change_operand(op, 0, OpCode::kArithAddi, 1);
    case Operator::kDouble:
      return duplicate(op);
    case Operator::kDropBarrier:
      for (Op* user : users_of_barrier(module, op)) erase(*user);
      return;
    case Operator::kShrink:
      return shrink(op);
    case Operator::kShift: {
      const size_t d = sliced(op)[static_cast<size_t>(mutation.variant)];
      return change_operand(op, 1 + d, OpCode::kArithAddi, op.result()->type.shape()[d]);
    }
  }
}

}  // namespace gridless::certificate
