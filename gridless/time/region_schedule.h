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
// the core would have issued them, which is after the stores before them; a copy waits for the
// stores and loads of its own buffers only.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gridless/ir/module.h"
#include "gridless/time/bundle_slots.h"
#include "gridless/time/constants.h"
#include "gridless/time/lanes_alike.h"

namespace gridless::time {

// Cycles, by what the core is busy with: matrix units (pushes, and nothing else to do until sums
// come out), vectors, or scalars alone.
struct Cycles {
  double mxu = 0, vector = 0, scalar = 0;
  double total() const { return mxu + vector + scalar; }
};

// What a region has to know of the function that it is in.
struct FunctionFacts {
  explicit FunctionFacts(const ir::Op& function) : lanes(function), constants(function) {}

  const LanesAlike lanes;
  const Constants constants;
  bool bounds_checks = true;  // the compiler's run-time checks of copies cost scalar bundles
  // Cores are not numbered as their devices are: the number of another core's device is looked up.
  bool renumbered = false;
  // Ends of copies whose checks stand earlier in the function: what they found is used again.
  std::set<std::string> checked;
};

class RegionSchedule {
 public:
  // `facts` must outlive the schedule.
  explicit RegionSchedule(FunctionFacts& facts)
      : facts_(facts), lanes_(facts.lanes), constants_(facts.constants) {}

  // The next operation of the region.
  void add(const ir::Op& op);
  // The same, but it costs nothing: its results are there with its operands.
  void add_free(const ir::Op& op);
  // The next operation is an event (copy, signal, wait): the cycle at which it happens. What comes
  // later in the program may still be scheduled before it.
  int add_event(const ir::Op& op);
  // Puts those of the vectors that are constants into registers of their own.
  void put_constants(const std::vector<const ir::Value*>& values);
  // `to` are other names of `from`: what a loop of one round takes and gives.
  void rename(const std::vector<const ir::Value*>& from,
              const std::vector<std::unique_ptr<ir::Value>>& to);
  // The operations of both ways of a branch have been added: its results (scalars) are chosen.
  void choose(const ir::Op& branch);
  // Scalar bundles that no operation stands for, behind what has been added.
  void add_scalar(int bundles) { cursor_ = chain(length(), bundles); }
  // What the compiler puts around the body: a table comes to SMEM before anything else; a result in
  // VMEM leaves behind all that has been added.
  void add_table_copy();
  void add_result_copy();
  // The region ends with a branch on `condition` (null: a loop's own counter).
  void end_with_branch(const ir::Value* condition);

  // Stores that a load soon behind the region's end still waits for, their cycles counted from
  // there.
  struct Box {  // the part of a memory that an access touches; empty bounds: any
    std::vector<std::pair<int64_t, int64_t>> bounds;
    int cycle = 0;
    const ir::Value* value = nullptr;  // what a store put there, if it is all of it
    const ir::Block* block = nullptr;  // that the store stands in
  };
  using Recent = std::pair<const ir::Value*, Box>;
  std::vector<Recent> recent_stores() const;
  // The region comes behind one with these.
  void follow(const std::vector<Recent>& stores);

  // Makes what is left to make of values that `wanted` says are read elsewhere.
  void finish(const std::function<bool(const ir::Value*)>& wanted);

  int length() const;
  // How the cycles [from, to) divide.
  Cycles split(int from, int to) const;
  // Operations whose cost nobody has measured: it is guessed from their class.
  const std::vector<const ir::Op*>& unmeasured() const { return unmeasured_; }

 private:
  // The registers that hold a vector, by number; a scalar or a ref has one. Vectors share
  // registers where an operation only regards them otherwise (casts of shape, whole registers of a
  // slice), so such operations wait for nothing.
  using Held = std::vector<int>;
  // What makes a register happens when it is first wanted, as a compiler with few registers and an
  // eye for dead code has it. `make` gives the cycle at which it is there; null: it has been made.
  struct Register {
    int ready = 0;
    std::function<int(int soonest)> make;
  };
  // Registers that are there from the start: of constants, and of what was made before the region.
  static constexpr int kConstant = 0, kFromBefore = 1;
  static bool is_constant(const ir::Value* v);
  Held& held(const ir::Value* v);
  int new_register(std::function<int(int soonest)> make);
  // The register that stands for the k-th of `of` that the vector is seen as.
  int register_of(const ir::Value* v, size_t k, size_t of);
  // When it is there, made if need be. `soonest`: it is not wanted before.
  int register_ready(int number, int soonest = 0);
  int register_ready(const ir::Value* v, size_t k, size_t of, int soonest = 0) {
    return register_ready(register_of(v, k, of), soonest);
  }
  std::vector<int> all_ready(const ir::Value* v);
  int ready(const ir::Value* v);
  int ready(const ir::Op& op);  // all operands, whole
  // The result is in registers of its own, there at these cycles.
  void define(const ir::Op& op, const std::vector<int>& ready);
  // The result is in n registers of its own, the k-th made by make(k, soonest) when it is wanted.
  void define_lazily(const ir::Op& op, size_t n, const std::function<int(size_t, int)>& make);
  // The result is what these registers hold.
  void alias(const ir::Op& op, Held registers);

  void scalar(const ir::Op& op);
  void elementwise(const ir::Op& op);
  void select(const ir::Op& op);
  const ir::Value* share_angle(const ir::Op& op, chips::OpCost& cost);
  static bool is_plain(const ir::Op& op, size_t indices);
  void load(const ir::Op& op);
  void store(const ir::Op& op);
  void broadcast(const ir::Op& op);
  void reduce(const ir::Op& op);
  void reduce_index(const ir::Op& op);
  void transpose(const ir::Op& op);
  // Slices, concatenations, reshapes and rotations: nothing where whole registers move.
  void slice(const ir::Op& op);
  void concatenate(const ir::Op& op);
  void reshape(const ir::Op& op);
  void rotate(const ir::Op& op);
  int put_together(int at, bool across_lanes);  // a register from parts of others
  int rotated(std::map<int, int>& done, int number, bool across_lanes);
  int combined(std::vector<int> parts);
  void gather(const ir::Op& op);
  void extract(const ir::Op& op);
  void matmul(const ir::Op& op);
  void push_rhs(const ir::Op& op);
  void multiply(const ir::Op& op);
  void pop(const ir::Op& op);

  int start_copy(const ir::Op& op);
  int prepared(int at, int bundles, bool remote);
  int check_bundles(const ir::Value* ref);
  int checked_copy(int known, int after, int first, int second);
  int issue(CostUnit unit, int at, bool narrow = false);  // of a vector unit
  int issue_all(const chips::OpCost& cost, int64_t k, int at);
  int chain(int at, int bundles);  // scalar bundles one after the other; the cycle behind them
  int lane_reduce(const std::vector<int>& registers, bool integer = false);
  void push(int mxu, const ir::Value* weights, const std::vector<int64_t>& which);
  int push_register(int mxu, int at);
  int multiply_rows(int mxu, int64_t rows, int at);
  static bool apart(const Box& a, const Box& b);
  static const ir::Value* base_of(const ir::Value* ref);
  // The first cycle behind the accesses to a buffer so far.
  int behind_stores(const ir::Value* base) const;
  int behind_loads(const ir::Value* base) const;
  const ir::Value* box_of(const ir::Value* ref, const ir::Op& op, size_t first_index,
                          const ir::Shape& sizes, Box& box);

  FunctionFacts& facts_;
  const LanesAlike& lanes_;
  const Constants& constants_;
  BundleSlots slots_;
  std::array<MxuState, 2> mxus_{};
  std::vector<Register> registers_ = {{}, {}};
  std::unordered_map<const ir::Value*, Held> held_;
  std::vector<const ir::Op*> unmeasured_;
  std::vector<const ir::Value*> lazy_;  // values that may have registers still to be made
  std::unordered_map<const ir::Value*, int> depth_;  // of what is to be made behind each other
  std::unordered_map<const ir::Value*, std::vector<Box>> stores_;
  std::unordered_map<int64_t, int> accumulators_;  // mxu * 1000 + number: last rows in
  // By angle, the sine or cosine that was taken of it first.
  std::unordered_map<const ir::Value*, const ir::Value*> angles_;
  std::unordered_map<const ir::Value*, int> last_loads_;
  int last_store_ = 0, cursor_ = 0, end_ = 0;
  int barrier_ = 0;  // no access to memory that is added from now on comes before
  int prng_ = 0;     // the random number generator has its seed
  int first_vector_ = -1, last_vector_ = -1;
  std::vector<std::pair<int, int>> mxu_spans_;
};

}  // namespace gridless::time
