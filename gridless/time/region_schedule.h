// RegionSchedule: the cycles of a straight line of operations, as the TPU's compiler would schedule
// them.
//
// Every vector operation becomes instructions, one or some per vector register of its result, with
// the slots and latencies of chips/op_costs.h; an instruction waits for the registers it reads, not
// for whole vectors. Matrix products keep the two matrix units busy: registers of weights pushed,
// rows multiplied, sums popped 211 cycles later. The places come from BundleSlots.
//
// Not modelled: the number of registers (spills), bundles that libtpu fills better by looking
// ahead, conflicts of VMEM banks, fetching of instructions.
//
// Copies, signals and waits are events: a region ends at a wait; the others get the cycle at which
// the core would have issued them, which is after the stores and loads before them.
#pragma once

#include <unordered_map>
#include <vector>

#include "gridless/ir/module.h"
#include "gridless/time/bundle_slots.h"

namespace gridless::time {

// Cycles, by what the core is busy with: matrix units (pushes, and nothing else to do until sums
// come out), vectors, or scalars alone.
struct Cycles {
  double mxu = 0, vector = 0, scalar = 0;
  double total() const { return mxu + vector + scalar; }
};

class RegionSchedule {
 public:
  // The compiler's run-time checks of copies cost scalar bundles.
  explicit RegionSchedule(bool bounds_checks) : bounds_checks_(bounds_checks) {}

  // The next operation of the region.
  void add(const ir::Op& op);
  // The next operation is an event (copy, signal, wait): the cycle at which it happens. What comes
  // later in the program may still be scheduled before it.
  int add_event(const ir::Op& op);
  // Scalar bundles that no operation stands for, behind what has been added.
  void add_scalar(int bundles) { cursor_ = chain(length(), bundles); }
  // The region ends with a branch on `condition` (null: a loop's own counter).
  void end_with_branch(const ir::Value* condition);

  // The region ends some other way.
  void end() { load_what_is_left(); }

  int length() const;
  // How the cycles [from, to) divide.
  Cycles split(int from, int to) const;

 private:
  // When each register of a vector is there; a scalar or a ref has one entry.
  struct Times {
    std::vector<int> ready;
    bool lanes_alike = false;  // every lane holds the same: what a reduction over lanes leaves
    // Loads are issued when their registers are first used, as a compiler with few registers does:
    // kNotLoaded until then.
    int load_from = 0;  // cycle from which on they may be
  };
  static constexpr int kNotLoaded = -1;
  struct Box {  // the part of a memory that an access touches; empty bounds: any
    std::vector<std::pair<int64_t, int64_t>> bounds;
    int cycle = 0;
  };
  Times& times(const ir::Value* v);
  // When register k of `of` registers that the vector is seen as is there, loaded if need be.
  // `soonest`: a load is not wanted before.
  int register_ready(const ir::Value* v, size_t k, size_t of, int soonest = 0);
  const std::vector<int>& registers(const ir::Value* v);  // all of them, loaded
  void load_what_is_left();                               // of all vectors so far
  int ready(const ir::Value* v);
  int ready(const ir::Op& op);  // all operands, whole
  void define(const ir::Op& op, Times t);

  void scalar(const ir::Op& op);
  void elementwise(const ir::Op& op);
  void load(const ir::Op& op);
  void store(const ir::Op& op);
  void broadcast(const ir::Op& op);
  void reduce(const ir::Op& op);
  void reduce_index(const ir::Op& op);
  void transpose(const ir::Op& op);
  void move(const ir::Op& op);  // slices, concatenations, rotations, reshapes
  void gather(const ir::Op& op);
  void extract(const ir::Op& op);
  void matmul(const ir::Op& op);
  void push_rhs(const ir::Op& op);
  void multiply(const ir::Op& op);
  void pop(const ir::Op& op);

  int issue(CostUnit unit, int at);  // of a vector unit
  int chain(int at, int bundles);    // scalar bundles one after the other; the cycle behind them
  int lane_reduce(const std::vector<int>& registers);
  void push(int mxu, const ir::Value* weights, const std::vector<int64_t>& which);
  int push_register(int mxu, int at);
  int multiply_rows(int mxu, int64_t rows, int at);
  const ir::Value* box_of(const ir::Value* ref, const ir::Op& op, size_t first_index,
                          const ir::Shape& sizes, Box& box);

  bool bounds_checks_;
  BundleSlots slots_;
  std::array<MxuState, 2> mxus_{};
  std::unordered_map<const ir::Value*, Times> times_;
  std::vector<const ir::Value*> loads_;  // whose registers may not all be loaded
  std::unordered_map<const ir::Value*, std::vector<Box>> stores_;
  std::unordered_map<int64_t, int> accumulators_;  // mxu * 1000 + number: last rows in
  int last_load_ = 0, last_store_ = 0, cursor_ = 0, end_ = 0;
  int first_vector_ = -1, last_vector_ = -1;
  std::vector<std::pair<int, int>> mxu_spans_;
};

}  // namespace gridless::time
