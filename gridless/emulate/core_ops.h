// One function per op that touches a core's state, declared from the op table (the pure ones are in
// pure_ops.h). Each reads its operands from the frame and writes its results there.
#pragma once

#include <optional>

#include "gridless/emulate/contents.h"
#include "gridless/emulate/fault.h"
#include "gridless/emulate/gate.h"
#include "gridless/emulate/machine.h"
#include "gridless/emulate/pure_ops.h"
#include "gridless/emulate/recorder.h"
#include "gridless/ir/visit.h"

namespace gridless::emulate {

enum class Step : uint8_t {
  kNext,
  kBlocked,  // not executed; try again later
  kHeld,     // the same, at the gate
  kPoll,     // executed; let the other cores run before going on
};

#define GRIDLESS_STATEFUL(id) Step id(const ir::Op& op);
#undef GRIDLESS_NOT_PURE
#define GRIDLESS_NOT_PURE GRIDLESS_STATEFUL
#define GRIDLESS_IF_kPure(id) \
  Step id(const ir::Op& op) { return pure(op); }

struct CoreOps {
  Machine& machine;
  Core& core;
  Frame& frame;
  const Instr* instr = nullptr;
  std::vector<const RtValue*> args;  // of the op in hand

  Step run(const Instr& in) {
    instr = &in;
    args.clear();
    for (int32_t s : frame.program->operands(in))
      args.push_back(&frame.slots[static_cast<size_t>(s)]);
    return ir::visit(*this, *in.op);
  }

  // A scalar that decides control flow, an address, an amount or a device.
  void decides(const ir::Op& op, const Scalar& s) const {
    if (s.origin == Origin::kKnown) return;
    if (machine.recorder) machine.recorder->decides(op, s);
    if (machine.gate) machine.gate->decides(op, s);
  }

#define GRIDLESS_DECLARE(id, name, least, most, results, regions, rule, effect, ...) \
  GRIDLESS_IF_##effect(id)
  GRIDLESS_OPS(GRIDLESS_DECLARE)
#undef GRIDLESS_DECLARE
#undef GRIDLESS_IF_kPure

 private:
  Recorder::At at() const { return {core, frame, *instr}; }
  // Asks the gate, if there is one, and counts the event; true: it must wait. `make` describes it.
  // Asked after all checks, before anything changes.
  template <typename Make>
  bool held(const Make& make) {
    if (machine.gate && !machine.gate->pass(core, make())) return true;
    ++core.events;
    return false;
  }
  bool held_access(Event::Kind kind, const ir::Op& op, const View& v, const Shape& starts,
                   const Shape& sizes, const Shape& steps) {
    if (machine.gate && !machine.gate->watches_accesses()) {
      ++core.events;
      return false;
    }
    return held([&] {
      return Event{.kind = kind,
                   .op = &op,
                   .buffer = v.buffer,
                   .region = region_of(v, starts, sizes, steps)};
    });
  }
  // The amount of a signal or a wait: what is in a semaphore only ever grows but by its owner's
  // waits, or nothing that is known of one run would hold in others.
  int64_t amount(const ir::Op& op, size_t operand) const;
  bool held_count(Event::Kind kind, const ir::Op& op, const View& v, int on_core, int64_t amount);
  // Under a recorder, a load that does not lie in its ref: garbage beyond the ref's end. What lies
  // in the ref is read all the same, and the result is where that is from.
  std::optional<Origin> lenient(const View& v, const Shape& starts, const Shape& sizes,
                                const Shape& steps, bool masked);
  Scalar read_or_garbage(const View& v, const Shape& at) const;
  Step pure(const ir::Op& op);
  // Under a recorder a broken promise of alignment is noted, and the run goes on.
  void check_promise(const ir::Op& op);
  // Where a pure op's result is from.
  Origin origin_of_operands(const ir::Op& op) const;
  void inherit_origin(const ir::Op& op);
  static void inherit(Vector& out, Origin loaded, const RtValue* mask);
  // A vector of what nobody gave.
  static bool made_up(const RtValue& v) {
    const auto* x = std::get_if<Vector>(&v);  // under scalars only there is none
    return x && x->origin() == Origin::kNotGiven;
  }
  void record_store(const View& v, const Region& region, const RtValue* mask,
                    std::span<const int32_t> on, bool add);
  // Under scalars only: a scalar that has no value counts as zero.
  static Scalar unknown(Elem e, Origin origin) { return {.elem = e, .origin = origin}; }

  void set(RtValue v) {
    frame.slots[static_cast<size_t>(frame.program->results(*instr)[0])] = std::move(v);
  }
  void set(View v) { set(RtValue(std::make_shared<const View>(std::move(v)))); }
  const View& ref(size_t i) const { return view(*args[i]); }
  int64_t integer(size_t i) const {
    const Scalar& s = scalar(*args[i]);
    decides(*instr->op, s);
    return s.i;
  }
  // Operands [begin, end) as indices.
  Shape indices(size_t begin, size_t end) const;
  // Faults with out_of_bounds unless the block lies in the ref.
  void check_block(const ir::Op& op, const View& v, const Shape& starts, const Shape& sizes,
                   const Shape& steps) const;
  // The same for a slice of which only the size is used.
  void check_size(const ir::Op& op, const Shape& sizes) const;
  void check_writable(const ir::Op& op, const View& v) const;
  Step load(const ir::Op& op, const View& v, Shape starts, Shape steps, const RtValue* mask);
  // Operand 0 to the block at `starts`.
  Step store(const ir::Op& op, const View& v, Shape starts, Shape steps, const RtValue* mask,
             bool add);
  Step view_or_fault(const ir::Op& op, std::string problem, View v);

  // The semaphore a rank-0 (or one-element) ref names, here or on another core.
  Semaphore& semaphore(const ir::Op& op, const View& v, int on_core);
  int device(const ir::Op& op, size_t operand) const;
  Step wait(const ir::Op& op, const View& semaphore_ref, int64_t need);
};

// Where each operand segment of an op begins; begins[i + 1] is where it ends.
std::vector<size_t> segments(const ir::Op& op);

}  // namespace gridless::emulate
