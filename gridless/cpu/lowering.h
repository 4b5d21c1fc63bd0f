// The lowering pass, for the files of this room that implement it: lower.cc (driver, slots, steps),
// lower_control.cc (loops and branches), lower_composites.cc, lower_copies.cc (DMAs and
// semaphores). What it does stands in lower.h.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "gridless/base/check.h"
#include "gridless/cpu/alias_map.h"
#include "gridless/cpu/composites.h"
#include "gridless/cpu/lower.h"
#include "gridless/emulate/codec.h"
#include "gridless/emulate/fault.h"

namespace gridless::cpu {

using emulate::Instr;
using emulate::RtValue;
using emulate::View;
using ir::Op;
using ir::OpCode;
using ir::Value;

// One pass over one kernel for one core.
class Lowering {
 public:
  Lowering(const emulate::Kernel& kernel, emulate::Machine& machine, int core,
           const KernelTable& kernels, const LowerOptions& options);
  Tape run();

 private:
  // --- slots ---
  static RtValue ref(View v) { return RtValue(std::make_shared<const View>(std::move(v))); }
  int32_t new_slot(RtValue value, bool known);
  void define_known(const Value* v, RtValue value) {
    slot_of_[v] = new_slot(std::move(value), true);
  }
  int32_t define_unknown(const Value* v) { return slot_of_[v] = new_slot({}, false); }
  int32_t slot(const Value* v) const;
  const RtValue& value(int32_t s) const { return frame_.slots[static_cast<size_t>(s)]; }
  bool known(const Value* v) const { return known_[static_cast<size_t>(slot(v))]; }
  bool known(const Op& op) const;
  int64_t integer(const Value* v) const { return emulate::scalar(value(slot(v))).i; }
  const View& view(const Value* v) const { return emulate::view(value(slot(v))); }

  // --- steps ---
  size_t here() const { return tape_.steps.size(); }
  void emit(Step s) {
    tape_.steps.push_back(std::move(s));
    tape_.ops.push_back(current_);
  }
  // An instruction on slots for the op library.
  int32_t instruction(const Op& op, const std::vector<int32_t>& operands,
                      const std::vector<int32_t>& results);
  std::vector<int32_t> operand_slots(const Op& op);
  void evaluate_now(const Op& op);
  void generic(const Op& op);

  // --- aliases: copies that were put off ---
  View resolve(const View& v);
  // Makes the copies that were put off, where `v` touches them.
  void materialise(const View& v) {
    for (const AliasMap::Alias& a : aliases_.take_overlapping(v)) copy_now(a.source, a.target);
  }
  void materialise_all() {
    for (const AliasMap::Alias& a : aliases_.take_all()) copy_now(a.source, a.target);
  }
  // The same for an access through a ref whose place is only known at run time: all of its buffer.
  void materialise_behind(const Value* ref);
  void copy_now(const View& src, const View& dst);

  // --- control ---
  // Lowers all ops but the terminator, which is returned.
  const Op* block(const ir::Block& b);
  static bool is_terminator(OpCode c) {
    return c == OpCode::kScfYield || c == OpCode::kTpuYield || c == OpCode::kFuncReturn ||
           c == OpCode::kScfCondition;
  }
  bool dead(const Op& op) const;
  void lower_op(const Op& op);
  void bind_results(const Op& op, const std::vector<int32_t>& slots) {
    for (size_t i = 0; i < op.results.size(); ++i) slot_of_[op.result(i)] = slots[i];
  }
  std::vector<int32_t> slots_of(const std::vector<Value*>& values, size_t from = 0) const;
  void region(const Op& op);
  static int64_t count_ops(const Op& op);
  void for_loop(const Op& op);
  void unroll(const Op& op, int64_t lo, int64_t trips, int64_t step);
  // slots `to` = slots `from`, as values of that moment.
  void move(std::vector<int32_t> from, std::vector<int32_t> to);
  void set_jump(size_t at, size_t target, int32_t unless);
  void dynamic_for(const Op& op);
  void branch(const Op& op);
  void while_loop(const Op& op);

  // --- composites ---
  bool composite(const Op& op);
  // Values defined outside `region` that ops inside write through, directly or through views.
  static std::unordered_set<const Value*> written_by(const Op& region);
  // True when the ref is a slice along leading dimensions only of something contiguous.
  bool whole_rows(const Value* v) const;

  // --- copies and semaphores ---
  struct DmaOperands {
    const Value *src, *sent, *dst, *done, *device;
  };
  static DmaOperands dma_operands(const Op& op);
  // The device operand of this instance as a slot or a constant.
  struct Device {
    int32_t slot = -1;
    int core = 0;
    const Op* op = nullptr;
    int get(CoreRun& run) const {
      if (slot < 0) return core;
      return existing(*op, emulate::scalar(run.frame.slots[static_cast<size_t>(slot)]).i,
                      *run.machine);
    }
    // `d`, or a fault when there is no such core.
    static int existing(const Op& op, int64_t d, const emulate::Machine& machine);
  };
  Device device_of(const Op& op, const Value* v);
  // A ref operand at run time: the known view, or the slot that will hold it.
  struct Place {
    View view;
    int32_t slot = -1;
    const View& get(CoreRun& run) const {
      return slot < 0 ? view : emulate::view(run.frame.slots[static_cast<size_t>(slot)]);
    }
  };
  Place place(const Value* v) { return known(v) ? Place{.view = view(v)} : Place{.slot = slot(v)}; }
  static void add(CoreRun& run, const View& semaphore, int core, int64_t n);
  void start_copy(const Op& op);
  void wait_for(const Op& op, Place semaphore, Place amount_of, int32_t amount_slot,
                int64_t amount);
  void wait_copy(const Op& op);
  void wait_semaphore(const Op& op);
  void signal(const Op& op);
  void read_semaphore(const Op& op);

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
  // Sites that other cores copy into. What such a buffer holds is not only this core's doing, so it
  // is never replaced by a view.
  std::unordered_set<int32_t> remote_targets_;
  // Per composite: its operands, and which of them its body writes.
  std::unordered_map<const Op*, std::pair<std::vector<Value*>, std::unordered_set<const Value*>>>
      contracts_;
  AliasMap aliases_;
  const Op* current_ = nullptr;  // the op being lowered, for traces
  int dynamic_ = 0;              // depth of data-dependent control
};

// The allocation or argument behind a ref.
const Value* base_of(const Value* ref);

// Bytes of a contiguous view, and whether it is one.
std::byte* bytes_of(const View& v);
bool is_linear(const View& v);

}  // namespace gridless::cpu
