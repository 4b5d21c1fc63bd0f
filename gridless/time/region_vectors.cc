// Vector operations in a RegionSchedule: arithmetic, loads and stores, reductions.
#include <algorithm>
#include <cmath>
#include <optional>

#include "gridless/time/op_estimate.h"
#include "gridless/time/region_schedule.h"
#include "gridless/time/registers.h"

namespace gridless::time {
namespace {

using ir::Effect;

const chips::UnitCosts& units() { return chips::tpu7x_unit_costs(); }

// The k-th of n registers when they take `per` each on average.
int share(float per, int64_t k) {
  return static_cast<int>(std::floor(static_cast<float>(k + 1) * per + 1e-4f)) -
         static_cast<int>(std::floor(static_cast<float>(k) * per + 1e-4f));
}

}  // namespace

void RegionSchedule::elementwise(const ir::Op& op) {
  auto [cost, measured] = estimate(op);
  const auto n = static_cast<size_t>(registers_of(op.result()->type).count());
  // A cost is per register of the wider side: a cast to bf16 packs two into one.
  size_t wide = n;
  for (const ir::Value* v : op.operands) wide = std::max(wide, held(v).size());
  if (constants_.known(op.result())) return alias(op, Held(n, kConstant));
  if (!measured) unmeasured_.push_back(&op);
  std::vector<const ir::Value*> from(op.operands.begin(), op.operands.end());
  if (op.code == ir::OpCode::kMathSin || op.code == ir::OpCode::kMathCos)
    from[0] = share_angle(op, cost);
  const bool free = cost.valu + cost.eup + cost.xlu == 0;
  if (free && op.operands.size() == 1 && held(op.operands[0]).size() == n)
    return alias(op, held(op.operands[0]));
  if (op.code == ir::OpCode::kArithSelect && constants_.known(op.operands[0])) return select(op);
  define_lazily(op, n, [this, &op, from, cost = cost, n, wide](size_t k, int) {
    int done = 0;
    for (size_t w = k * wide / n; w < (k + 1) * wide / n; ++w) {
      int at = op.info().effect == Effect::kPrngState ? prng_ : 0;
      for (const ir::Value* v : from) at = std::max(at, register_ready(v, w, wide));
      done = std::max(done, issue_all(cost, static_cast<int64_t>(w), at));
    }
    return done;
  });
}

// The second of a sine and a cosine of one angle finds it reduced by the first: that is what it
// waits for, and little is left to do.
const ir::Value* RegionSchedule::share_angle(const ir::Op& op, chips::OpCost& cost) {
  const auto [first, fresh] = angles_.try_emplace(op.operands[0], op.result());
  const chips::OpCost* second = chips::find_op_cost("math.sin+math.cos", cost.from, cost.to);
  if (fresh || !second) return op.operands[0];
  cost.valu = second->valu;
  cost.eup = second->eup;
  cost.latency = second->valu;
  return first->second;
}

// By a mask that is known: most registers are one operand's or the other's as they are.
void RegionSchedule::select(const ir::Op& op) {
  const ir::Value *mask = op.operands[0], *yes = op.operands[1], *no = op.operands[2];
  const ir::Type type = op.result()->type;
  const auto n = static_cast<size_t>(registers_of(type).count());
  Held out;
  for (size_t k = 0; k < n; ++k) {
    const int if_true = register_of(yes, k, n), if_false = register_of(no, k, n);
    const std::optional<bool> decided = constants_.decides(mask, type, k);
    out.push_back(
        decided ? (*decided ? if_true : if_false) : new_register([this, if_true, if_false](int) {
          const int at = std::max(register_ready(if_true), register_ready(if_false));
          return issue(CostUnit::kValu, at) + 1;
        }));
  }
  alias(op, std::move(out));
}

// The instructions of one register, the k-th, from cycle `at` on: those of a long operation (a sine
// is some ninety) follow each other over its latency. When the result is there.
int RegionSchedule::issue_all(const chips::OpCost& cost, int64_t k, int at) {
  const auto latency = static_cast<int>(cost.latency);
  const int chain = std::max(0, latency - units().valu_latency);
  int late = 0;  // behind the plan at the end, for lack of slots
  const auto place = [&](CostUnit unit, float per, int begin, int spread) {
    const int n = share(per, k);
    int behind = 0;
    for (int u = 0; u < n; ++u) {
      const int planned = begin + u * spread / n;
      behind = issue(unit, planned) - planned;
    }
    late = std::max(late, behind);
    return n;
  };
  int n = place(CostUnit::kValu, cost.valu, at, cost.eup > 0 ? chain / 2 : chain);
  n += place(CostUnit::kEup, cost.eup, at + std::max(0, latency - units().eup_latency) / 2, chain);
  n += place(CostUnit::kXlu, cost.xlu, at, chain);
  return n > 0 ? at + latency + late : at;
}

// Whether a load or a store takes every element of its box, and does nothing else.
bool RegionSchedule::is_plain(const ir::Op& op, size_t indices) {
  const ir::Attr* strides = op.find("strides");
  return op.operands.size() == indices && (!strides || (*strides)->ints.empty()) &&
         !op.bool_attr_or("add", false);
}

void RegionSchedule::load(const ir::Op& op) {
  const ir::Type type = op.result()->type;
  const bool segmented = op.find("operandSegmentSizes") != nullptr;
  Box box;
  const size_t indices = segmented ? 1 : op.operands.size() - 1;
  const ir::Value* base = box_of(op.operands[0], op, 1, type.shape(), box);
  int at = std::max(barrier_, ready(op.operands[0]));
  for (size_t k = 1; k < 1 + indices && k < op.operands.size(); ++k)
    at = std::max(at, ready(op.operands[k]));
  const std::vector<Box>& stores = stores_[base];
  const auto last =
      std::find_if(stores.rbegin(), stores.rend(), [&](const Box& s) { return !apart(s, box); });
  // What the same block stored there is still in registers.
  if (last != stores.rend() && last->value && last->block == op.parent &&
      last->value->type == type && !box.bounds.empty() && last->bounds == box.bounds &&
      is_plain(op, 1 + box.bounds.size()))
    return alias(op, Held(held(last->value)));
  for (const Box& s : stores)
    if (!apart(s, box)) at = std::max(at, s.cycle + units().store_to_load);
  define_lazily(op, static_cast<size_t>(registers_of(type).count()),
                [this, at, base, narrow = is_narrow(type)](size_t, int soonest) {
                  const int cycle = issue(CostUnit::kLoad, std::max(at, soonest), narrow);
                  int& last = last_loads_.try_emplace(base, cycle).first->second;
                  last = std::max(last, cycle);
                  return cycle + units().load_latency;
                });
}

void RegionSchedule::store(const ir::Op& op) {
  const ir::Value* value = op.operands[0];
  Box box;
  const ir::Value* base = box_of(op.operands[1], op, 2, value->type.shape(), box);
  int address = std::max(barrier_, ready(op.operands[1]));
  for (size_t k = 2; k < op.operands.size(); ++k)
    address = std::max(address, ready(op.operands[k]));
  const bool adds = op.bool_attr_or("add", false);
  const auto n = static_cast<size_t>(registers_of(value->type).count());
  for (size_t k = 0; k < n; ++k) {
    int at = std::max(address, register_ready(value, k, n));
    if (adds)
      at = issue(CostUnit::kValu, issue(CostUnit::kLoad, address) + 1) + units().valu_latency;
    box.cycle = std::max(box.cycle, issue(CostUnit::kStore, at, is_narrow(value->type)));
  }
  last_store_ = std::max(last_store_, box.cycle);
  if (is_plain(op, 2 + box.bounds.size())) box.value = value, box.block = op.parent;
  stores_[base].push_back(std::move(box));
}

std::vector<RegionSchedule::Recent> RegionSchedule::recent_stores() const {
  std::vector<Recent> out;
  for (const auto& [base, stores] : stores_)
    for (Box s : stores) {
      s.cycle -= length();
      s.value = nullptr;
      if (s.cycle + units().store_to_load > 0) out.emplace_back(base, std::move(s));
    }
  return out;
}

void RegionSchedule::follow(const std::vector<Recent>& stores) {
  for (const auto& [base, s] : stores) stores_[base].push_back(s);
}

bool RegionSchedule::apart(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.bounds.size() && d < b.bounds.size(); ++d)
    if (a.bounds[d].second <= b.bounds[d].first || b.bounds[d].second <= a.bounds[d].first)
      return true;
  return false;
}

// The memory behind a ref, and which part of it is touched, as far as constants tell: at constant
// indices, of slices at constant places.
const ir::Value* RegionSchedule::box_of(const ir::Value* ref, const ir::Op& op, size_t first_index,
                                        const ir::Shape& sizes, Box& box) {
  std::vector<int64_t> from(sizes.size());
  const auto add = [&](const ir::Op& to, size_t first) {
    for (size_t d = 0; d < from.size() && first + d < to.operands.size(); ++d) {
      const ir::Value* index = to.operands[first + d];
      if (!is_constant(index)) return false;
      from[d] += (*index->op->find("value"))->ints.at(0);
    }
    return true;
  };
  bool known = ref->type.shape().size() == sizes.size() && add(op, first_index);
  for (; ref->op && ref->op->info().effect == Effect::kView; ref = ref->op->operands[0])
    known = known && ref->op->code == ir::OpCode::kTpuMemrefSlice && add(*ref->op, 1);
  if (known)
    for (size_t d = 0; d < sizes.size(); ++d) box.bounds.emplace_back(from[d], from[d] + sizes[d]);
  return ref;
}

const ir::Value* RegionSchedule::base_of(const ir::Value* ref) {
  while (ref->op && ref->op->info().effect == Effect::kView) ref = ref->op->operands[0];
  return ref;
}

int RegionSchedule::behind_stores(const ir::Value* base) const {
  int at = 0;
  if (const auto it = stores_.find(base); it != stores_.end())
    for (const Box& s : it->second) at = std::max(at, s.cycle + 1);
  return at;
}

int RegionSchedule::behind_loads(const ir::Value* base) const {
  const auto it = last_loads_.find(base);
  return it == last_loads_.end() ? 0 : it->second + 1;
}

void RegionSchedule::broadcast(const ir::Op& op) {
  const ir::Value* source = op.operands[0];
  const Registers to = registers_of(op.result()->type), from = registers_of(source->type);
  const auto n = static_cast<size_t>(to.count());
  if (is_constant(source) || constants_.known(source)) return alias(op, Held(n, kConstant));
  if (!source->type.is_vector()) {
    // One register holds the scalar for all of them.
    define_lazily(
        op, 1, [this, source](size_t, int) { return issue(CostUnit::kValu, ready(source)) + 1; });
    return;
  }
  const ir::Shape& s = source->type.shape();
  const bool from_lane = !s.empty() && s.back() == 1 && op.result()->type.shape().back() > 1;
  Held in = held(source);
  if (from_lane && !lanes_.of(source)) {  // one lane to all of them
    const Held lanes = in;
    define_lazily(op, in.size(), [this, lanes](size_t k, int) {
      return issue(CostUnit::kXlu, register_ready(lanes[k])) + units().lane_permute_latency;
    });
    in = held(op.result());
  }
  Held out(n);
  for (size_t k = 0; k < n; ++k) {
    const auto i = static_cast<int64_t>(k);
    const int64_t col = i % to.cols % from.cols, row = i / to.cols % to.rows % from.rows,
                  outer = i / (to.cols * to.rows) % from.outer;
    const auto at = static_cast<size_t>((outer * from.rows + row) * from.cols + col);
    // A reduced vector keeps the registers of its rows.
    out[k] = in.size() == static_cast<size_t>(from.count()) ? in[at] : in[k * in.size() / n];
  }
  alias(op, std::move(out));
}

// One register of partial results, then once across its lanes. The XLU reduces floats: the least or
// largest integer is found in its upper half first, then among those that have it in the lower.
int RegionSchedule::lane_reduce(const std::vector<int>& registers, bool integer) {
  // A tree: the registers of a row come one after another anyway.
  std::vector<int> level = registers;
  while (level.size() > 1) {
    std::vector<int> next;
    for (size_t k = 0; k + 1 < level.size(); k += 2)
      next.push_back(issue(CostUnit::kValu, std::max(level[k], level[k + 1])) +
                     units().valu_latency);
    if (level.size() % 2) next.push_back(level.back());
    level = std::move(next);
  }
  int at = level[0];
  if (integer) {
    for (int k = 0; k < 2; ++k) at = issue(CostUnit::kValu, at) + units().valu_latency;
    at = issue(CostUnit::kXlu, at) + units().lane_reduce_latency;
    for (int k = 0; k < 2; ++k) at = issue(CostUnit::kValu, at) + 1;
  }
  at = issue(CostUnit::kXlu, at) + units().lane_reduce_latency;
  if (integer)
    for (int k = 0; k < 2; ++k) at = issue(CostUnit::kValu, at) + units().valu_latency;
  return at;
}

void RegionSchedule::reduce(const ir::Op& op) {
  const ir::Value* source = op.operands[0];
  const Registers from = registers_of(source->type);
  const auto rank = static_cast<int64_t>(source->type.shape().size());
  bool lanes = false, rows = false, outer = false;
  for (const int64_t d : op.ints_attr("reduction_dims"))
    (d == rank - 1 ? lanes : d == rank - 2 ? rows : outer) = true;
  const std::vector<int> in = all_ready(source);
  const auto at = [&](int64_t o, int64_t r, int64_t c) {
    const auto k = static_cast<size_t>((o * from.rows + r) * from.cols + c);
    return in[k * in.size() / static_cast<size_t>(from.count())];
  };
  const int64_t outers = outer ? 1 : from.outer, row_blocks = rows ? 1 : from.rows,
                col_blocks = lanes ? 1 : from.cols;
  std::vector<int> out;
  for (int64_t o = 0; o < outers; ++o)
    for (int64_t r = 0; r < row_blocks; ++r)
      for (int64_t c = 0; c < col_blocks; ++c) {
        std::vector<int> parts;
        for (int64_t o2 = outer ? 0 : o; o2 < (outer ? from.outer : o + 1); ++o2)
          for (int64_t r2 = rows ? 0 : r; r2 < (rows ? from.rows : r + 1); ++r2)
            for (int64_t c2 = lanes ? 0 : c; c2 < (lanes ? from.cols : c + 1); ++c2)
              parts.push_back(at(o2, r2, c2));
        int t = 0;
        if (lanes) {
          t = lane_reduce(parts, !ir::is_float(source->type.elem()));
        } else {
          t = parts[0];
          for (size_t k = 1; k < parts.size(); ++k)
            t = issue(CostUnit::kValu, std::max(t, parts[k])) + units().valu_latency;
        }
        if (rows && source->type.shape()[static_cast<size_t>(rank - 2)] > 1)
          for (int k = 0; k < 3; ++k) {  // 8 sublanes: rotate and add, three times
            t = issue(CostUnit::kValu, t) + units().valu_latency;
            t = issue(CostUnit::kValu, t) + units().valu_latency;
          }
        out.push_back(t);
      }
  // One per row block, whatever shape the result's type has: it lies in the registers it was made
  // in.
  define(op, out);
}

// The largest, then the least index of those that equal it.
void RegionSchedule::reduce_index(const ir::Op& op) {
  const Registers from = registers_of(op.operands[0]->type);
  const std::vector<int> in = all_ready(op.operands[0]);
  std::vector<int> out;
  const auto per_row = std::min(static_cast<size_t>(from.cols), in.size());
  for (size_t k = 0; k + per_row <= in.size(); k += per_row) {
    const std::vector<int> row(in.begin() + static_cast<std::ptrdiff_t>(k),
                               in.begin() + static_cast<std::ptrdiff_t>(k + per_row));
    const int largest = lane_reduce(row);
    std::vector<int> indices;
    for (size_t c = 0; c < per_row; ++c) {
      const int compare = issue(CostUnit::kValu, largest) + 1;
      indices.push_back(issue(CostUnit::kValu, compare) + units().valu_latency);
    }
    out.push_back(lane_reduce(indices));
  }
  define(op, out);
}

void RegionSchedule::transpose(const ir::Op& op) {
  const std::vector<int> in = all_ready(op.operands[0]);
  const auto n = static_cast<size_t>(registers_of(op.result()->type).count());
  int last = 0;
  for (const int r : in) last = std::max(last, issue(CostUnit::kXlu, r));
  std::vector<int> out;
  for (size_t k = 0; k < n; ++k)
    out.push_back(issue(CostUnit::kXlu, last + units().transpose_latency) + 1);
  define(op, out);
}

void RegionSchedule::gather(const ir::Op& op) {
  const ir::Type to = op.result()->type;
  const auto& dims = op.ints_attr("dimensions");
  const bool lanes = !dims.empty() && dims[0] == to.rank() - 1;
  const int at = ready(op);
  std::vector<int> out;
  for (int64_t k = 0; k < registers_of(to).count(); ++k)
    out.push_back(lanes ? issue(CostUnit::kXlu, at) + units().lane_permute_latency
                        : issue(CostUnit::kValu, at) + units().valu_latency);
  define(op, out);
}

// An element of a register to the scalar unit.
void RegionSchedule::extract(const ir::Op& op) {
  int at = ready(op);
  if (op.result()->type.is_vector()) return define(op, {at});
  bool first = true;
  for (const int64_t p : op.ints_attr("static_position")) first = first && p == 0;
  if (!first) at = issue(CostUnit::kXlu, at) + units().lane_permute_latency;
  define(op, {issue(CostUnit::kStore, at) + units().to_scalar_latency});
}

}  // namespace gridless::time
