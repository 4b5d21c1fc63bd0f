#include "gridless/cpu/lower.h"

#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "gridless/base/check.h"
#include "gridless/cpu/alias_map.h"
#include "gridless/cpu/composites.h"
#include "gridless/emulate/codec.h"
#include "gridless/emulate/fault.h"
#include "gridless/ir/composite.h"

namespace gridless::cpu {

namespace {

using emulate::Buffer;
using emulate::Instr;
using emulate::RtValue;
using emulate::View;
using ir::Effect;
using ir::Op;
using ir::OpCode;
using ir::Value;

std::atomic_ref<int64_t> counter(const View& v, const emulate::Machine& m, int core) {
  Buffer& b = const_cast<Buffer&>(
      m.cores[static_cast<size_t>(core)].buffers[static_cast<size_t>(v.buffer->site)]);
  return std::atomic_ref<int64_t>(b.semaphores[static_cast<size_t>(v.offset)].count);
}

std::byte* bytes_of(const View& v) {
  return v.buffer->data.data() + v.offset * emulate::storage_bits(v.elem) / 8;
}

bool is_linear(const View& v) { return v.plain() && v.contiguous(); }

class Lowering {
 public:
  Lowering(const emulate::Kernel& kernel, emulate::Machine& machine, int core,
           const KernelTable& kernels, const LowerOptions& options)
      : kernel_(kernel),
        machine_(machine),
        core_(machine.cores[static_cast<size_t>(core)]),
        kernels_(kernels),
        options_(options),
        frame_(tape_.program),
        ops_{machine, core_, frame_} {
    for (const Instr& in : kernel.body.code) {
      if (in.op && (in.op->code == OpCode::kMemrefAlloca || in.op->code == OpCode::kTpuSemAlloc)) {
        sites_[in.op] = in.target;
      }
    }
    ir::walk(*kernel.function,
             [&](const Op& op) { used_.insert(op.operands.begin(), op.operands.end()); });
  }

  Tape run() {
    const ir::Block& body = kernel_.function->body();
    for (size_t i = 0; i < body.args.size(); ++i) {
      define_known(body.args[i].get(), ref(emulate::whole(core_.buffers[i])));
    }
    block(body);
    tape_.slots = std::move(frame_.slots);
    return std::move(tape_);
  }

 private:
  // --- slots
  // -------------------------------------------------------------------------------------------
  static RtValue ref(View v) { return RtValue(std::make_shared<const View>(std::move(v))); }

  int32_t new_slot(RtValue value, bool known) {
    frame_.slots.push_back(std::move(value));
    known_.push_back(known);
    return static_cast<int32_t>(frame_.slots.size()) - 1;
  }
  void define_known(const Value* v, RtValue value) {
    slot_of_[v] = new_slot(std::move(value), true);
  }
  int32_t define_unknown(const Value* v) { return slot_of_[v] = new_slot({}, false); }

  int32_t slot(const Value* v) const {
    const auto it = slot_of_.find(v);
    GRIDLESS_CHECK(it != slot_of_.end(), "a value is used before it is defined");
    return it->second;
  }
  const RtValue& value(int32_t s) const { return frame_.slots[static_cast<size_t>(s)]; }
  bool known(const Value* v) const { return known_[static_cast<size_t>(slot(v))]; }
  bool known(const Op& op) const {
    for (const Value* v : op.operands) {
      if (!known(v)) return false;
    }
    return true;
  }
  int64_t integer(const Value* v) const { return emulate::scalar(value(slot(v))).i; }
  const View& view(const Value* v) const { return emulate::view(value(slot(v))); }

  // --- steps
  // -------------------------------------------------------------------------------------------
  size_t here() const { return tape_.steps.size(); }
  void emit(Step s) { tape_.steps.push_back(std::move(s)); }

  // An instruction on slots for the op library.
  int32_t instruction(const Op& op, const std::vector<int32_t>& operands,
                      const std::vector<int32_t>& results) {
    emulate::Program& p = tape_.program;
    Instr in{.kind = Instr::Kind::kOp, .op = &op};
    if (const auto it = sites_.find(&op); it != sites_.end()) in.target = it->second;
    in.operands_begin = static_cast<int32_t>(p.slots.size());
    p.slots.insert(p.slots.end(), operands.begin(), operands.end());
    in.operands_end = in.results_begin = static_cast<int32_t>(p.slots.size());
    p.slots.insert(p.slots.end(), results.begin(), results.end());
    in.results_end = static_cast<int32_t>(p.slots.size());
    p.code.push_back(in);
    return static_cast<int32_t>(p.code.size()) - 1;
  }

  std::vector<int32_t> operand_slots(const Op& op) {
    std::vector<int32_t> out;
    for (const Value* v : op.operands) {
      int32_t s = slot(v);
      // Reads go to where the data really is.
      if (known_[static_cast<size_t>(s)] && std::holds_alternative<emulate::Ref>(value(s))) {
        const View& original = view(v);
        const View actual = resolve(original);
        if (actual.buffer != original.buffer) s = new_slot(ref(actual), true);
      }
      out.push_back(s);
    }
    return out;
  }

  void evaluate_now(const Op& op) {
    std::vector<int32_t> in, out;
    for (const Value* v : op.operands) in.push_back(slot(v));
    for (const auto& r : op.results) out.push_back(define_unknown(r.get()));
    const int32_t at = instruction(op, in, out);
    ops_.run(tape_.program.code[static_cast<size_t>(at)]);
    tape_.program.code.pop_back();
    for (int32_t s : out) known_[static_cast<size_t>(s)] = true;
  }

  void generic(const Op& op) {
    const std::vector<int32_t> in = operand_slots(op);
    std::vector<int32_t> out;
    for (const auto& r : op.results) out.push_back(define_unknown(r.get()));
    const int32_t at = instruction(op, in, out);
    ++tape_.generic;
    emit([at](CoreRun& run) {
      emulate::CoreOps ops{*run.machine, *run.core, run.frame};
      ops.run(run.tape->program.code[static_cast<size_t>(at)]);
      return Flow::kNext;
    });
  }

  // --- aliases
  // -----------------------------------------------------------------------------------------
  View resolve(const View& v) {
    View out;
    switch (aliases_.translate(v, out)) {
      case AliasMap::Hit::kNone:
        return v;
      case AliasMap::Hit::kInside:
        return out;
      case AliasMap::Hit::kPartly:
        materialise(v);
        return v;
    }
    return v;
  }
  // Makes the copies that were put off, where `v` touches them.
  void materialise(const View& v) {
    for (const AliasMap::Alias& a : aliases_.take_overlapping(v)) copy_now(a.source, a.target);
  }
  void materialise_all() {
    for (const AliasMap::Alias& a : aliases_.take_all()) copy_now(a.source, a.target);
  }
  void copy_now(const View& src, const View& dst) {
    ++tape_.copies;
    if (is_linear(src) && is_linear(dst)) {
      const std::byte* from = bytes_of(src);
      std::byte* to = bytes_of(dst);
      const auto n = static_cast<size_t>(dst.num_bytes());
      emit([from, to, n](CoreRun&) {
        std::memmove(to, from, n);
        return Flow::kNext;
      });
      return;
    }
    emit([src, dst](CoreRun&) {
      emulate::copy_view(src, dst);
      return Flow::kNext;
    });
  }

  // --- control
  // -----------------------------------------------------------------------------------------
  // Lowers all ops but the terminator, which is returned.
  const Op* block(const ir::Block& b) {
    for (const auto& op : b.ops) {
      if (op == b.ops.back() && is_terminator(op->code)) return op.get();
      lower_op(*op);
    }
    return nullptr;
  }
  static bool is_terminator(OpCode c) {
    return c == OpCode::kScfYield || c == OpCode::kTpuYield || c == OpCode::kFuncReturn ||
           c == OpCode::kScfCondition;
  }

  bool dead(const Op& op) const {
    const Effect e = op.info().effect;
    if (e != Effect::kPure && e != Effect::kReadRef && e != Effect::kView) return false;
    for (const auto& r : op.results) {
      if (used_.contains(r.get())) return false;
    }
    return !op.results.empty();
  }

  void lower_op(const Op& op) {
    if (dead(op)) return;
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
    // A ref whose place is not known may lie anywhere.
    for (const Value* v : op.operands) {
      if (v->type.is_memref() && !known(v)) materialise_all();
    }
    generic(op);
  }

  void bind_results(const Op& op, const std::vector<int32_t>& slots) {
    for (size_t i = 0; i < op.results.size(); ++i) slot_of_[op.result(i)] = slots[i];
  }
  std::vector<int32_t> slots_of(const std::vector<Value*>& values, size_t from = 0) const {
    std::vector<int32_t> out;
    for (size_t i = from; i < values.size(); ++i) out.push_back(slot(values[i]));
    return out;
  }

  void region(const Op& op) {
    if (options_.hand_kernels && has_hand_kernel(ir::composite_name(op)) && composite(op)) return;
    const Op* yield = block(op.body());
    bind_results(op, yield ? slots_of(yield->operands) : std::vector<int32_t>());
  }

  static int64_t count_ops(const Op& op) {
    int64_t n = 0;
    ir::walk(op, [&](const Op&) { ++n; });
    return n;
  }

  void for_loop(const Op& op) {
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

  void unroll(const Op& op, int64_t lo, int64_t trips, int64_t step) {
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

  // slots `to` = slots `from`, as values of that moment.
  void move(std::vector<int32_t> from, std::vector<int32_t> to) {
    if (from.empty()) return;
    emit([from = std::move(from), to = std::move(to)](CoreRun& run) {
      std::vector<RtValue> values;
      for (int32_t s : from) values.push_back(run.frame.slots[static_cast<size_t>(s)]);
      for (size_t i = 0; i < to.size(); ++i)
        run.frame.slots[static_cast<size_t>(to[i])] = std::move(values[i]);
      return Flow::kNext;
    });
  }
  void set_jump(size_t at, size_t target, int32_t unless) {
    tape_.steps[at] = [target, unless](CoreRun& run) {
      if (unless >= 0 && emulate::scalar(run.frame.slots[static_cast<size_t>(unless)]).i != 0)
        return Flow::kNext;
      run.pc = target;
      return Flow::kJump;
    };
  }

  void dynamic_for(const Op& op) {
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

  void branch(const Op& op) {
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

  void while_loop(const Op& op) {
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

  // --- composites
  // --------------------------------------------------------------------------------------
  bool composite(const Op& op) {
    const std::vector<Value*> values = ir::composite_operands(op);
    std::vector<BoundOperand> bound(values.size());
    std::vector<int32_t> slots(values.size(), -1);
    bool all_known = true;
    for (size_t i = 0; i < values.size(); ++i) {
      const Value* v = values[i];
      if (!known(v)) {
        all_known = false;
        slots[i] = slot(v);
        if (v->type.is_memref()) materialise_all();
      } else if (v->type.is_memref()) {
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
      if (slots[i] >= 0 && values[i]->type.is_memref() && !whole_rows(values[i])) return false;
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

  // True when the ref is a slice along leading dimensions only of something contiguous.
  bool whole_rows(const Value* v) const {
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

  // --- copies and semaphores
  // ----------------------------------------------------------------------------- Operand positions
  // by segment (source, source semaphore, target, target semaphore, device).
  struct DmaOperands {
    const Value *src, *sent, *dst, *done, *device;
  };
  static DmaOperands dma_operands(const Op& op) {
    const auto at = emulate::segments(op);
    const auto get = [&](size_t i) {
      return at.size() > i + 1 && at[i + 1] > at[i] ? op.operands[at[i]] : nullptr;
    };
    return {get(0), get(1), get(2), get(3), get(4)};
  }

  // The device operand of this instance as a slot or a constant.
  struct Device {
    int32_t slot = -1;
    int core = 0;
    int get(CoreRun& run) const {
      if (slot < 0) return core;
      const int64_t d = emulate::scalar(run.frame.slots[static_cast<size_t>(slot)]).i;
      GRIDLESS_CHECK(d >= 0 && d < static_cast<int64_t>(run.machine->cores.size()), "device {}", d);
      return static_cast<int>(d);
    }
  };
  Device device_of(const Op& op, const Value* v) {
    if (!v) return {.core = core_.id};
    if (!known(v)) return {.slot = slot(v)};
    const int64_t d = integer(v);
    if (d < 0 || d >= static_cast<int64_t>(machine_.cores.size())) {
      emulate::fault(op, "out_of_bounds", "device " + std::to_string(d) + " does not exist",
                     "device ids run from 0 to the number of cores - 1");
    }
    return {.core = static_cast<int>(d)};
  }

  // A ref operand at run time: the known view, or the slot that will hold it.
  struct Place {
    View view;
    int32_t slot = -1;
    const View& get(CoreRun& run) const {
      return slot < 0 ? view : emulate::view(run.frame.slots[static_cast<size_t>(slot)]);
    }
  };
  Place place(const Value* v) { return known(v) ? Place{.view = view(v)} : Place{.slot = slot(v)}; }

  static void add(CoreRun& run, const View& semaphore, int core, int64_t n) {
    counter(semaphore, *run.machine, core).fetch_add(n, std::memory_order_release);
    if (core != run.core->id) {
      run.remote_events->fetch_add(1, std::memory_order_release);
      run.remote_events->notify_all();
    }
  }

  void start_copy(const Op& op) {
    const DmaOperands o = dma_operands(op);
    const Device device = device_of(op, o.device);
    const Place done = place(o.done);
    const Place sent = o.sent ? place(o.sent) : Place{};
    const bool has_sent = o.sent != nullptr;
    if (!known(o.src) || !known(o.dst)) materialise_all();
    Place src = place(o.src);
    const Place dst = place(o.dst);
    if (src.slot < 0) src.view = resolve(src.view);
    const bool local = !o.device;
    const int64_t bytes = emulate::storage_bytes(o.dst->type.elem(), o.dst->type.num_elements());

    if (local && src.slot < 0 && dst.slot < 0) {
      const bool viewable = dynamic_ == 0 && src.view.buffer->read_only && is_linear(src.view) &&
                            is_linear(dst.view) && o.dst->type.space() == ir::Space::kVmem;
      // Copies that were put off for the same place: one that is overwritten whole need never be
      // made.
      for (const AliasMap::Alias& a : aliases_.take_overlapping(dst.view)) {
        if (!is_linear(dst.view) || !AliasMap::covers(dst.view, a)) copy_now(a.source, a.target);
      }
      if (viewable) {
        aliases_.add(src.view, dst.view);
        ++tape_.views;
      } else {
        copy_now(src.view, dst.view);
      }
      emit([done, bytes](CoreRun& run) {
        add(run, done.get(run), run.core->id, bytes);
        return Flow::kNext;
      });
      return;
    }
    if (dst.slot < 0) materialise(dst.view);
    ++tape_.copies;
    emit([=](CoreRun& run) {
      const int to = device.get(run);
      View target = dst.get(run);
      target.buffer = &run.machine->cores[static_cast<size_t>(to)]
                           .buffers[static_cast<size_t>(target.buffer->site)];
      const View& source = src.get(run);
      if (is_linear(source) && is_linear(target)) {
        std::memmove(bytes_of(target), bytes_of(source), static_cast<size_t>(target.num_bytes()));
      } else {
        emulate::copy_view(source, target);
      }
      const int64_t n = target.num_bytes();
      if (has_sent) add(run, sent.get(run), run.core->id, n);
      add(run, done.get(run), to, n);
      return Flow::kNext;
    });
  }

  void wait_for(const Op& op, Place semaphore, Place amount_of, int32_t amount_slot,
                int64_t amount) {
    emit([=, &op](CoreRun& run) {
      int64_t need = amount;
      if (amount_slot >= 0)
        need = emulate::scalar(run.frame.slots[static_cast<size_t>(amount_slot)]).i;
      if (amount_of.slot >= 0) need = amount_of.get(run).num_bytes();
      auto count = counter(semaphore.get(run), *run.machine, run.core->id);
      const int64_t have = count.load(std::memory_order_acquire);
      if (have < need) {
        run.blocked = {&op, have, need};
        return Flow::kBlocked;
      }
      count.fetch_sub(need, std::memory_order_relaxed);
      return Flow::kNext;
    });
  }

  void wait_copy(const Op& op) {
    const DmaOperands o = dma_operands(op);
    const bool target = op.bool_attr_or("wait_target", true);
    const Value* counted = target ? o.dst : o.src;
    const Place ref = place(counted);
    wait_for(op, place(target || !o.sent ? o.done : o.sent), ref, -1,
             ref.slot < 0 ? ref.view.num_bytes() : 0);
  }

  void wait_semaphore(const Op& op) {
    const Value* n = op.operands[1];
    wait_for(op, place(op.operands[0]), {}, known(n) ? -1 : slot(n), known(n) ? integer(n) : 0);
  }

  void signal(const Op& op) {
    const auto at = emulate::segments(op);
    const Value* n = op.operands[at[1]];
    const Device device =
        device_of(op, at.size() > 3 && at[3] > at[2] ? op.operands[at[2]] : nullptr);
    const Place semaphore = place(op.operands[0]);
    const int32_t amount = known(n) ? -1 : slot(n);
    const int64_t fixed = known(n) ? integer(n) : 0;
    emit([=](CoreRun& run) {
      const int64_t k =
          amount < 0 ? fixed : emulate::scalar(run.frame.slots[static_cast<size_t>(amount)]).i;
      add(run, semaphore.get(run), device.get(run), k);
      return Flow::kNext;
    });
  }

  void read_semaphore(const Op& op) {
    const Place semaphore = place(op.operands[0]);
    const int32_t out = define_unknown(op.result());
    emit([=](CoreRun& run) {
      const int64_t n =
          counter(semaphore.get(run), *run.machine, run.core->id).load(std::memory_order_acquire);
      run.frame.slots[static_cast<size_t>(out)] = emulate::make_int(ir::Elem::kI32, n);
      return Flow::kNext;
    });
  }

  const emulate::Kernel& kernel_;
  emulate::Machine& machine_;
  emulate::Core& core_;
  const KernelTable& kernels_;
  const LowerOptions& options_;
  Tape tape_;
  emulate::Frame frame_;
  emulate::CoreOps ops_;
  std::vector<bool> known_;
  std::unordered_map<const Value*, int32_t> slot_of_;
  std::unordered_map<const Op*, int32_t> sites_;
  std::unordered_set<const Value*> used_;
  AliasMap aliases_;
  int dynamic_ = 0;  // depth of data-dependent control
};

}  // namespace

std::expected<Tape, Diagnostics> lower(const emulate::Kernel& kernel, emulate::Machine& machine,
                                       int core, const KernelTable& kernels,
                                       const LowerOptions& options) {
  try {
    return Lowering(kernel, machine, core, kernels, options).run();
  } catch (emulate::Fault& f) {
    return std::unexpected(Diagnostics{std::move(f.diagnostic)});
  }
}

}  // namespace gridless::cpu
