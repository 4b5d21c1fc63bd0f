#include "gridless/time/region_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "gridless/time/registers.h"

namespace gridless::time {
namespace {

using ir::Effect;
using ir::OpCode;

const chips::UnitCosts& units() { return chips::tpu7x_unit_costs(); }

// Bundles from a buffer's place to an address.
constexpr int kAddress = 2;

// A name for the part of a buffer that a ref is, where its place is a constant; else empty.
std::string constant_part(const ir::Value* ref) {
  std::string name;
  for (; ref->op && ref->op->info().effect == Effect::kView; ref = ref->op->operands[0]) {
    name += fmt::format("{}:", ref->type.num_elements());
    for (size_t k = 1; k < ref->op->operands.size(); ++k) {
      const ir::Op* index = ref->op->operands[k]->op;
      if (!index || index->code != OpCode::kArithConstant) return "";
      name += fmt::format("{},", fmt::join((*index->find("value"))->ints, ","));
    }
  }
  return name + fmt::format("of {}", fmt::ptr(ref));
}

// Scalar bundles that start a copy. One that is not contiguous, or goes to another core, needs a
// descriptor in SMEM; arrays of less than 32 bits are tiled differently in HBM and in VMEM.
int start_bundles(const ir::Op& op) {
  const chips::UnitCosts& u = chips::tpu7x_unit_costs();
  if (!op.segment(4).empty()) return u.remote_start;
  const ir::Type type = op.operands[0]->type;
  const ir::Shape& shape = type.shape();
  if (ir::bit_width(type.elem()) != 16 || shape.back() <= chips::kTpu7x.lanes) return u.copy_start;
  const bool one_row_of_tiles =
      shape.size() < 2 || shape[shape.size() - 2] <= register_rows(type.elem());
  return one_row_of_tiles ? u.copy_start_strided_row : u.copy_start_strided;
}

// A condition that was made a number and is now asked whether it is not zero: what front ends write
// for every branch.
bool is_condition_itself(const ir::Op& op) {
  const ir::Op* number = op.operands[0]->op;
  const ir::Op* zero = op.operands[1]->op;
  return op.int_attr("predicate") == 1 && number && number->code == OpCode::kArithExtui &&
         number->operands[0]->type.elem() == ir::Elem::kI1 && zero &&
         zero->code == OpCode::kArithConstant && (*zero->find("value"))->ints.size() == 1 &&
         (*zero->find("value"))->ints[0] == 0;
}

}  // namespace

bool RegionSchedule::is_constant(const ir::Value* v) {
  return v->op && v->op->code == OpCode::kArithConstant;
}

RegionSchedule::Held& RegionSchedule::held(const ir::Value* v) {
  const auto [it, fresh] = held_.try_emplace(v);
  if (fresh) {
    const int64_t n = v->type.is_vector() ? registers_of(v->type).count() : 1;
    it->second.assign(static_cast<size_t>(n), is_constant(v) ? kConstant : kFromBefore);
  }
  return it->second;
}

int RegionSchedule::new_register(std::function<int(int soonest)> make) {
  registers_.push_back({.ready = 0, .make = std::move(make)});
  return static_cast<int>(registers_.size()) - 1;
}

int RegionSchedule::register_of(const ir::Value* v, size_t k, size_t of) {
  const Held& in = held(v);
  return in.empty() ? kConstant : in[k * in.size() / of];
}

int RegionSchedule::register_ready(int number, int soonest) {
  const auto k = static_cast<size_t>(number);
  if (registers_[k].make) {
    const auto make = std::exchange(registers_[k].make, nullptr);
    const int at = make(soonest);
    registers_[k].ready = at;
    end_ = std::max(end_, at);
  }
  return registers_[k].ready;
}

std::vector<int> RegionSchedule::all_ready(const ir::Value* v) {
  std::vector<int> out;
  for (const int r : held(v)) out.push_back(register_ready(r));
  return out;
}

void RegionSchedule::finish(const std::function<bool(const ir::Value*)>& wanted) {
  for (const ir::Value* v : lazy_)
    if (wanted(v)) all_ready(v);
}

int RegionSchedule::ready(const ir::Value* v) {
  int at = 0;
  for (const int r : held(v)) at = std::max(at, register_ready(r));
  return at;
}

int RegionSchedule::ready(const ir::Op& op) {
  int at = 0;
  for (const ir::Value* v : op.operands) at = std::max(at, ready(v));
  return at;
}

void RegionSchedule::define(const ir::Op& op, const std::vector<int>& ready) {
  Held out;
  for (const int at : ready) {
    end_ = std::max(end_, at);
    out.push_back(static_cast<int>(registers_.size()));
    registers_.push_back({.ready = at, .make = nullptr});
  }
  held_[op.result()] = std::move(out);
}

void RegionSchedule::define_lazily(const ir::Op& op, size_t n,
                                   const std::function<int(size_t, int)>& make) {
  Held out;
  for (size_t k = 0; k < n; ++k)
    out.push_back(new_register([make, k](int soonest) { return make(k, soonest); }));
  alias(op, std::move(out));
}

void RegionSchedule::alias(const ir::Op& op, Held registers) {
  // Making one register makes those that it is made of: not too many of them in one go.
  constexpr int kDeepest = 500;
  const ir::Value* v = op.result();
  held_[v] = std::move(registers);
  int depth = 0;
  for (const ir::Value* from : op.operands) {
    const auto it = depth_.find(from);
    if (it != depth_.end()) depth = std::max(depth, it->second);
  }
  if (depth < kDeepest) {
    depth_[v] = depth + 1;
    lazy_.push_back(v);
  } else {
    all_ready(v);
  }
}

int RegionSchedule::issue(CostUnit unit, int at, bool narrow) {
  const int cycle = slots_.place(unit, at, narrow);
  if (first_vector_ < 0 || cycle < first_vector_) first_vector_ = cycle;
  last_vector_ = std::max(last_vector_, cycle);
  return cycle;
}

int RegionSchedule::chain(int at, int bundles) {
  for (int k = 0; k < bundles; ++k) at = slots_.place(CostUnit::kScalar, at) + 1;
  return at;
}

int RegionSchedule::length() const { return std::max({slots_.length(), cursor_, end_}); }

void RegionSchedule::scalar(const ir::Op& op) {
  if (op.results.size() != 1) return;
  int latency = 1;
  switch (op.code) {
    case OpCode::kArithIndexCast:
    case OpCode::kArithBitcast:
    case OpCode::kTpuAssumeMultiple:
      return alias(op, held(op.operands[0]));
    case OpCode::kArithExtui:
      if (op.operands[0]->type.elem() == ir::Elem::kI1) return alias(op, held(op.operands[0]));
      break;
    case OpCode::kArithCmpi:
      if (is_condition_itself(op)) return alias(op, held(op.operands[0]));
      break;
    case OpCode::kArithMuli:
      latency = 2;
      break;
    case OpCode::kArithDivsi:
    case OpCode::kArithDivui:
    case OpCode::kArithRemsi:
    case OpCode::kArithRemui:
      // By a power of two it is a mask or a shift.
      latency = is_constant(op.operands[1]) ? 2 : 13;
      break;
    default:
      break;
  }
  define_lazily(op, 1, [this, &op, latency](size_t, int) {
    return slots_.place(CostUnit::kScalar, ready(op)) + latency;
  });
}

void RegionSchedule::add_free(const ir::Op& op) {
  if (op.results.size() != 1) return;
  const int at = ready(op);
  define(op, std::vector<int>(held(op.result()).size(), at));
}

void RegionSchedule::add(const ir::Op& op) {
  switch (op.code) {
    case OpCode::kTpuDeviceId:
      return define(op, {slots_.place(CostUnit::kScalar, 0) + units().device_id_latency});
    case OpCode::kTpuRegion:  // its operations have been added
      for (size_t k = 0; k < op.results.size(); ++k)
        held_[op.result(k)] = held(op.body().ops.back()->operands[k]);
      return;
    case OpCode::kVectorBroadcast:
      return broadcast(op);
    case OpCode::kVectorMultiReduction:
      return reduce(op);
    case OpCode::kTpuReduceIndex:
      return reduce_index(op);
    case OpCode::kTpuTranspose:
      return transpose(op);
    case OpCode::kVectorShapeCast:
      return reshape(op);
    case OpCode::kVectorExtractStridedSlice:
      return slice(op);
    case OpCode::kTpuConcatenate:
      return concatenate(op);
    case OpCode::kTpuDynamicRotate:
      return rotate(op);
    case OpCode::kTpuDynamicGather:
      return gather(op);
    case OpCode::kVectorExtract:
      return extract(op);
    case OpCode::kTpuMatmul:
      return matmul(op);
    case OpCode::kTpuMatmulPushRhs:
      return push_rhs(op);
    case OpCode::kTpuMatmulAccLhs:
    case OpCode::kTpuMatmulLhsFifo:
      return multiply(op);
    case OpCode::kTpuMatmulPop:
    case OpCode::kTpuMatmulPopFifo:
      return pop(op);
    case OpCode::kMemrefLoad:
      return define_lazily(op, 1, [this, &op, after = barrier_](size_t, int) {
        return slots_.place(CostUnit::kScalar, std::max(after, ready(op))) +
               units().scalar_load_latency;
      });
    case OpCode::kMemrefStore:
      end_ = std::max(end_, slots_.place(CostUnit::kScalar, ready(op)) + 1);
      return;
    default:
      break;
  }
  switch (op.info().effect) {
    case Effect::kReadRef:
      return load(op);
    case Effect::kWriteRef:
    case Effect::kReadWriteRef:
      return store(op);
    case Effect::kView: {
      // An address per index that is not a constant: shift and add.
      int at = ready(op);
      for (size_t k = 1; k < op.operands.size(); ++k)
        if (!is_constant(op.operands[k])) at = chain(at, 2);
      return define(op, {at});
    }
    case Effect::kPure:
    case Effect::kPrngState:
      if (op.code == OpCode::kTpuPrngSetSeed32)
        end_ = std::max(end_, prng_ = ready(op) + units().prng_seed_latency);
      if (!op.results.empty() && op.result()->type.is_vector()) return elementwise(op);
      return scalar(op);
    case Effect::kAlloc:
      return define(op, {0});
    default:
      return;
  }
}

// Scalar bundles of the check of one end of a copy. The halt alone is left of one that repeats
// another.
int RegionSchedule::check_bundles(const ir::Value* ref) {
  const chips::UnitCosts& u = units();
  if (ref->type.space() == ir::Space::kSmem) return 0;
  if (const std::string part = constant_part(ref);
      !part.empty() && !facts_.checked.insert(part).second)
    return 1;
  if (ref->type.space() == ir::Space::kVmem) return u.check_vmem;
  bool part = false;
  for (; ref->op && ref->op->info().effect == Effect::kView; ref = ref->op->operands[0])
    part = part || ref->type.num_elements() != ref->op->operands[0]->type.num_elements();
  return part ? u.check_hbm_part : u.check_hbm;
}

void RegionSchedule::rename(const std::vector<const ir::Value*>& from,
                            const std::vector<std::unique_ptr<ir::Value>>& to) {
  for (size_t k = 0; k < to.size(); ++k) {
    const ir::Value* name = to[k].get();
    held_[name] = Held(held(from[k]));
    lazy_.push_back(name);
  }
}

void RegionSchedule::put_constants(const std::vector<const ir::Value*>& values) {
  for (const ir::Value* v : values) {
    if (!v->type.is_vector()) continue;
    for (const int number : held(v))
      if (number == kConstant) end_ = std::max(end_, issue(CostUnit::kValu, 0) + 1);
  }
}

void RegionSchedule::choose(const ir::Op& branch) {
  for (size_t k = 0; k < branch.results.size(); ++k) {
    const int number = new_register([this, &branch, k](int) {
      int at = ready(branch.operands[0]);
      for (size_t way = 0; way < 2; ++way)
        at = std::max(at, ready(branch.body(way).ops.back()->operands[k]));
      return slots_.place(CostUnit::kScalar, at) + 1;
    });
    held_[branch.result(k)] = {number};
    lazy_.push_back(branch.result(k));
  }
}

void RegionSchedule::add_table_copy() {
  const chips::UnitCosts& u = units();
  cursor_ = facts_.bounds_checks ? checked_copy(cursor_ + kAddress, cursor_, u.check_vmem, 0)
                                 : chain(cursor_, u.copy_start);
  cursor_ = barrier_ = chain(cursor_, u.wait + 2);  // two fences
}

// The cycle at which the arithmetic and the descriptor of an event are done: there is room for them
// behind the event before, whatever the stores do that the event itself waits for.
int RegionSchedule::prepared(int at, int bundles, bool remote) {
  if (remote && facts_.renumbered) at = std::max(at, cursor_ + units().scalar_load_latency);
  return chain(at, bundles);
}

int RegionSchedule::start_copy(const ir::Op& op) {
  const int start = start_bundles(op);
  // What it reads has been stored, what it overwrites has been stored and read; of other buffers it
  // knows nothing.
  const ir::Value *from = base_of(op.segment(0)[0]), *to = base_of(op.segment(2)[0]);
  const int after = std::max({cursor_, behind_stores(from), behind_stores(to), behind_loads(to)});
  // Copies that need a descriptor are not checked.
  if (start > units().copy_start) {
    const int known = prepared(std::max(ready(op), cursor_), start - 1, !op.segment(4).empty());
    return chain(std::max(known, after), 1);
  }
  if (!facts_.bounds_checks) return chain(std::max(after, ready(op)), start);
  const int first = check_bundles(op.segment(0)[0]), second = check_bundles(op.segment(2)[0]);
  return checked_copy(ready(op), after, first, second);
}

// A check is arithmetic and a halt; the arithmetic of the first one goes where there is room for
// it, the halts, the second check and the copy follow each other, and no access to memory overtakes
// them.
int RegionSchedule::checked_copy(int known, int after, int first, int second) {
  known = chain(std::max(known, barrier_), std::max(0, first - 1));
  barrier_ = chain(std::max(known, after), (first > 0 ? 1 : 0) + second + units().copy_start);
  return barrier_;
}

void RegionSchedule::add_result_copy() {
  const chips::UnitCosts& u = units();
  cursor_ = facts_.bounds_checks ? checked_copy(kAddress, length(), u.check_vmem, u.check_hbm)
                                 : chain(length(), u.copy_start);
  cursor_ = chain(cursor_, u.wait + 1);  // and its semaphore is given back
}

int RegionSchedule::add_event(const ir::Op& op) {
  const chips::UnitCosts& u = units();
  const int at = std::max(cursor_, ready(op));
  switch (op.info().effect) {
    case Effect::kDmaStart:
      cursor_ = start_copy(op);
      break;
    case Effect::kSignal: {
      const bool remote = op.operands.size() > 2;
      const int known = remote ? prepared(at, u.signal - 1, true) : at;
      cursor_ = chain(std::max(known, last_store_ + 1), 1);
      break;
    }
    default:
      cursor_ = chain(std::max(at, length()), u.wait);
      break;
  }
  if (!op.results.empty()) define(op, {cursor_ + u.scalar_load_latency});
  return cursor_;
}

void RegionSchedule::end_with_branch(const ir::Value* condition) {
  const int known = std::max(barrier_ + 1, condition ? ready(condition) : chain(0, 2));
  end_ = std::max(end_, known + 1 + units().branch_delay);
}

Cycles RegionSchedule::split(int from, int to) const {
  Cycles out;
  for (const auto& [begin, end] : mxu_spans_)
    out.mxu += std::max(0, std::min(end, to) - std::max(begin, from));
  const double rest = std::max(0.0, to - from - out.mxu);
  const int vector =
      first_vector_ < 0
          ? 0
          : std::max(0, std::min(last_vector_ + 1, to) - std::max(first_vector_, from));
  out.vector = std::clamp(vector - out.mxu, 0.0, rest);
  out.scalar = rest - out.vector;
  return out;
}

}  // namespace gridless::time
