#include "gridless/cpu/lowering.h"
#include "gridless/ir/composite.h"

namespace gridless::cpu {

using ir::Effect;

const Op* Lowering::block(const ir::Block& b) {
  for (const auto& op : b.ops) {
    if (op == b.ops.back() && is_terminator(op->code)) return op.get();
    lower_op(*op);
  }
  return nullptr;
}

bool Lowering::dead(const Op& op) const {
  const Effect e = op.info().effect;
  if (e != Effect::kPure && e != Effect::kReadRef && e != Effect::kView) return false;
  for (const auto& r : op.results) {
    if (used_.contains(r.get())) return false;
  }
  return !op.results.empty();
}

void Lowering::lower_op(const Op& op) {
  if (dead(op)) return;
  current_ = &op;
  switch (op.code) {
    case OpCode::kScfFor:
      return for_loop(op);
    case OpCode::kScfIf:
      return branch(op);
    case OpCode::kScfWhile:
      return while_loop(op);
    case OpCode::kTpuRegion:
      return region(op);
    case OpCode::kTpuEnqueueDma:
      return start_copy(op);
    case OpCode::kTpuWaitDma:
      return wait_copy(op);
    case OpCode::kTpuSemSignal:
      return signal(op);
    case OpCode::kTpuSemWait:
      return wait_semaphore(op);
    case OpCode::kTpuSemRead:
      return read_semaphore(op);
    case OpCode::kTpuDelay:
      return;
    default:
      break;
  }
  const Effect e = op.info().effect;
  if (e == Effect::kTrace) return;
  if ((e == Effect::kPure || e == Effect::kView || e == Effect::kAlloc) && known(op))
    return evaluate_now(op);
  if (e == Effect::kWriteRef || e == Effect::kReadWriteRef) {
    for (const Value* v : op.operands) {
      if (v->type.is_memref() && known(v)) materialise(view(v));
    }
  }
  for (const Value* v : op.operands) {
    if (v->type.is_memref() && !known(v) && e != Effect::kView) materialise_behind(v);
  }
  generic(op);
}

std::vector<int32_t> Lowering::slots_of(const std::vector<Value*>& values, size_t from) const {
  std::vector<int32_t> out;
  for (size_t i = from; i < values.size(); ++i) out.push_back(slot(values[i]));
  return out;
}

void Lowering::region(const Op& op) {
  if (options_.hand_kernels && has_hand_kernel(ir::composite_name(op)) && composite(op)) return;
  const Op* yield = block(op.body());
  bind_results(op, yield ? slots_of(yield->operands) : std::vector<int32_t>());
}

int64_t Lowering::count_ops(const Op& op) {
  int64_t n = 0;
  ir::walk(op, [&](const Op&) { ++n; });
  return n;
}

void Lowering::for_loop(const Op& op) {
  const bool bounds = known(op.operands[0]) && known(op.operands[1]) && known(op.operands[2]);
  if (bounds) {
    const int64_t lo = integer(op.operands[0]), hi = integer(op.operands[1]),
                  step = integer(op.operands[2]);
    if (step <= 0) emulate::fault(op, "invalid_ir", "a loop whose step is not positive");
    const int64_t trips = hi > lo ? (hi - lo + step - 1) / step : 0;
    if (trips * count_ops(op) + static_cast<int64_t>(here()) <= options_.max_unrolled_steps) {
      return unroll(op, lo, trips, step);
    }
  }
  dynamic_for(op);
}

void Lowering::unroll(const Op& op, int64_t lo, int64_t trips, int64_t step) {
  const ir::Block& body = op.body();
  std::vector<int32_t> carried = slots_of(op.operands, 3);
  const ir::Elem elem = op.operands[0]->type.elem();
  for (int64_t t = 0; t < trips; ++t) {
    define_known(body.args[0].get(), RtValue(emulate::make_int(elem, lo + t * step)));
    for (size_t i = 0; i < carried.size(); ++i) slot_of_[body.args[i + 1].get()] = carried[i];
    const Op* yield = block(body);
    carried = slots_of(yield->operands);
  }
  bind_results(op, carried);
}

void Lowering::move(std::vector<int32_t> from, std::vector<int32_t> to) {
  if (from.empty()) return;
  emit([from = std::move(from), to = std::move(to)](CoreRun& run) {
    std::vector<RtValue> values;
    for (int32_t s : from) values.push_back(run.frame.slots[static_cast<size_t>(s)]);
    for (size_t i = 0; i < to.size(); ++i)
      run.frame.slots[static_cast<size_t>(to[i])] = std::move(values[i]);
    return Flow::kNext;
  });
}

void Lowering::set_jump(size_t at, size_t target, int32_t unless) {
  tape_.steps[at] = [target, unless](CoreRun& run) {
    if (unless >= 0 && emulate::scalar(run.frame.slots[static_cast<size_t>(unless)]).i != 0)
      return Flow::kNext;
    run.pc = target;
    return Flow::kJump;
  };
}

void Lowering::dynamic_for(const Op& op) {
  materialise_all();
  ++dynamic_;
  const ir::Block& body = op.body();
  std::vector<int32_t> args;
  for (const auto& a : body.args) args.push_back(define_unknown(a.get()));
  std::vector<int32_t> from = {slot(op.operands[0])};
  for (int32_t s : slots_of(op.operands, 3)) from.push_back(s);
  move(from, args);
  const size_t head = here();
  const int32_t iv = args[0], hi = slot(op.operands[1]), step = slot(op.operands[2]);
  emit({});
  const Op* yield = block(body);
  materialise_all();
  move(slots_of(yield->operands), {args.begin() + 1, args.end()});
  emit([iv, step, head](CoreRun& run) {
    RtValue& v = run.frame.slots[static_cast<size_t>(iv)];
    const emulate::Scalar s = emulate::scalar(v);
    v = emulate::make_int(s.elem,
                          s.i + emulate::scalar(run.frame.slots[static_cast<size_t>(step)]).i);
    run.pc = head;
    return Flow::kJump;
  });
  const size_t end = here();
  tape_.steps[head] = [iv, hi, end](CoreRun& run) {
    const auto& slots = run.frame.slots;
    if (emulate::scalar(slots[static_cast<size_t>(iv)]).i <
        emulate::scalar(slots[static_cast<size_t>(hi)]).i) {
      return Flow::kNext;
    }
    run.pc = end;
    return Flow::kJump;
  };
  bind_results(op, {args.begin() + 1, args.end()});
  --dynamic_;
}

void Lowering::branch(const Op& op) {
  const auto has_body = [&](size_t i) {
    return i < op.regions.size() && !op.regions[i]->blocks.empty() && !op.body(i).ops.empty();
  };
  if (known(op.operands[0])) {
    const size_t taken = integer(op.operands[0]) != 0 ? 0 : 1;
    const Op* yield = has_body(taken) ? block(op.body(taken)) : nullptr;
    bind_results(op, yield ? slots_of(yield->operands) : std::vector<int32_t>());
    return;
  }
  materialise_all();
  ++dynamic_;
  std::vector<int32_t> results;
  for (const auto& r : op.results) results.push_back(define_unknown(r.get()));
  const int32_t condition = slot(op.operands[0]);
  const size_t test = here();
  emit({});
  const auto side = [&](size_t i) {
    if (!has_body(i)) return;
    const Op* yield = block(op.body(i));
    materialise_all();
    if (yield) move(slots_of(yield->operands), results);
  };
  side(0);
  const size_t skip = here();
  emit({});
  set_jump(test, here(), condition);
  side(1);
  set_jump(skip, here(), -1);
  --dynamic_;
}

void Lowering::while_loop(const Op& op) {
  materialise_all();
  ++dynamic_;
  std::vector<int32_t> before, after;
  for (const auto& a : op.body(0).args) before.push_back(define_unknown(a.get()));
  for (const auto& a : op.body(1).args) after.push_back(define_unknown(a.get()));
  move(slots_of(op.operands), before);
  const size_t head = here();
  const Op* condition = block(op.body(0));
  materialise_all();
  const std::vector<int32_t> passed = slots_of(condition->operands, 1);
  const int32_t go = slot(condition->operands[0]);
  move(passed, after);
  const size_t test = here();
  emit({});
  const Op* yield = block(op.body(1));
  materialise_all();
  move(slots_of(yield->operands), before);
  const size_t back = here();
  emit({});
  set_jump(back, head, -1);
  set_jump(test, here(), go);
  bind_results(op, after);
  --dynamic_;
}

}  // namespace gridless::cpu
