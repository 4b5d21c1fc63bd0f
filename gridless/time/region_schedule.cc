#include "gridless/time/region_schedule.h"

#include <algorithm>
#include <cmath>

#include "gridless/time/registers.h"

namespace gridless::time {
namespace {

using ir::Effect;
using ir::OpCode;

const chips::UnitCosts& units() { return chips::tpu7x_unit_costs(); }

// What an operation without a row of its own is taken to cost, by class.
chips::OpCost assumed(ir::Cost cost) {
  switch (cost) {
    case ir::Cost::kEup:
      return {"", "", "", 4, 1, 0, 20};
    case ir::Cost::kXlu:
      return {"", "", "", 0, 0, 1, static_cast<float>(units().lane_permute_latency)};
    case ir::Cost::kFree:
      return {"", "", "", 0, 0, 0, 0};
    default:
      return {"", "", "", 1, 0, 0, static_cast<float>(units().valu_latency)};
  }
}

chips::OpCost cost_of(const ir::Op& op) {
  const ir::Type from = (op.operands.empty() ? op.result() : op.operands[0])->type;
  const chips::OpCost* row = chips::find_op_cost(op.info().name, ir::spelling(from.elem()),
                                                 ir::spelling(op.result()->type.elem()));
  return row ? *row : assumed(op.info().cost);
}

// The k-th of n registers when they take `per` each on average.
int share(float per, int64_t k) {
  return static_cast<int>(std::floor(static_cast<float>(k + 1) * per + 1e-4f)) -
         static_cast<int>(std::floor(static_cast<float>(k) * per + 1e-4f));
}

// Shapes that differ in dimensions of one only.
bool same_but_ones(ir::Shape a, ir::Shape b) {
  std::erase(a, 1);
  std::erase(b, 1);
  return a == b;
}

// Scalar bundles that start a copy. One that is not contiguous, or goes to another core, needs a
// descriptor in SMEM; arrays of less than 32 bits are tiled differently in HBM and in VMEM.
int start_bundles(const ir::Op& op, bool checks) {
  const chips::UnitCosts& u = chips::tpu7x_unit_costs();
  const auto& segments = op.ints_attr("operandSegmentSizes");
  if (segments.size() > 4 && segments[4] > 0) return u.remote_start;
  const ir::Type type = op.operands[0]->type;
  if (ir::bit_width(type.elem()) == 16 && type.shape().back() > chips::kTpu7x.lanes)
    return u.copy_start_strided;
  return checks ? u.copy_start : u.copy_start_unchecked;
}

bool is_constant(const ir::Value* v) { return v->op && v->op->code == OpCode::kArithConstant; }

}  // namespace

RegionSchedule::Times& RegionSchedule::times(const ir::Value* v) {
  const auto [it, fresh] = times_.try_emplace(v);
  if (fresh) {  // from before the region
    const int64_t n = v->type.is_vector() ? registers_of(v->type).count() : 1;
    it->second.ready.assign(static_cast<size_t>(n), 0);
    // A splat constant needs no register per tile; its lanes are alike.
    it->second.lanes_alike = is_constant(v);
  }
  return it->second;
}

int RegionSchedule::register_ready(const ir::Value* v, size_t k, size_t of, int soonest) {
  Times& t = times(v);
  if (t.ready.empty()) return 0;
  int& r = t.ready[k * t.ready.size() / of];
  if (r == kNotLoaded) {
    const int cycle = issue(CostUnit::kLoad, std::max(t.load_from, soonest));
    last_load_ = std::max(last_load_, cycle);
    r = cycle + units().load_latency;
  }
  return r;
}

const std::vector<int>& RegionSchedule::registers(const ir::Value* v) {
  const size_t n = times(v).ready.size();
  for (size_t k = 0; k < n; ++k) register_ready(v, k, n);
  return times(v).ready;
}

void RegionSchedule::load_what_is_left() {
  for (const ir::Value* v : loads_) registers(v);
  loads_.clear();
}

int RegionSchedule::ready(const ir::Value* v) {
  const std::vector<int>& r = registers(v);
  return r.empty() ? 0 : *std::ranges::max_element(r);
}

int RegionSchedule::ready(const ir::Op& op) {
  int at = 0;
  for (const ir::Value* v : op.operands) at = std::max(at, ready(v));
  return at;
}

void RegionSchedule::define(const ir::Op& op, Times t) {
  for (const int r : t.ready) end_ = std::max(end_, r);
  times_[op.result()] = std::move(t);
}

int RegionSchedule::issue(CostUnit unit, int at) {
  const int cycle = slots_.place(unit, at);
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
  if (op.results.empty()) return;
  int at = ready(op), latency = 1;
  switch (op.code) {
    case OpCode::kArithConstant:
    case OpCode::kArithIndexCast:
    case OpCode::kArithBitcast:
    case OpCode::kTpuAssumeMultiple:
      return define(op, {{at}});
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
  define(op, {{slots_.place(CostUnit::kScalar, at) + latency}});
}

void RegionSchedule::elementwise(const ir::Op& op) {
  const chips::OpCost cost = cost_of(op);
  const auto n = static_cast<size_t>(registers_of(op.result()->type).count());
  bool alike = true;
  // A cost is per register of the wider side: a cast to bf16 packs two into one.
  size_t wide = n;
  for (const ir::Value* v : op.operands) {
    const Times& t = times(v);
    alike = alike && (t.lanes_alike || !v->type.is_vector());
    wide = std::max(wide, t.ready.size());
  }
  Times out{std::vector<int>(n, 0), alike};
  for (size_t w = 0; w < wide; ++w) {
    int at = 0;
    for (const ir::Value* v : op.operands) at = std::max(at, register_ready(v, w, wide));
    const auto k = static_cast<int64_t>(w);
    int last = at;
    const int valu = share(cost.valu, k), eup = share(cost.eup, k), xlu = share(cost.xlu, k);
    for (int u = 0; u < valu; ++u) last = issue(CostUnit::kValu, at);
    for (int u = 0; u < eup; ++u) last = std::max(last, issue(CostUnit::kEup, at));
    for (int u = 0; u < xlu; ++u) last = std::max(last, issue(CostUnit::kXlu, at));
    const bool any = valu + eup + xlu > 0;
    const int done = any ? last + static_cast<int>(cost.latency) : at;
    int& r = out.ready[w * n / wide];
    r = std::max(r, done);
  }
  define(op, std::move(out));
}

void RegionSchedule::load(const ir::Op& op) {
  const ir::Type type = op.result()->type;
  const bool segmented = op.find("operandSegmentSizes") != nullptr;
  Box box;
  const size_t indices = segmented ? 1 : op.operands.size() - 1;
  const ir::Value* base = box_of(op.operands[0], op, 1, type.shape(), box);
  int at = ready(op.operands[0]);
  for (size_t k = 1; k < 1 + indices && k < op.operands.size(); ++k)
    at = std::max(at, ready(op.operands[k]));
  for (const Box& s : stores_[base]) {
    bool apart = false;
    for (size_t d = 0; d < s.bounds.size() && d < box.bounds.size(); ++d)
      apart = apart || s.bounds[d].second <= box.bounds[d].first ||
              box.bounds[d].second <= s.bounds[d].first;
    if (!apart) at = std::max(at, s.cycle + 1);
  }
  Times out{std::vector<int>(static_cast<size_t>(registers_of(type).count()), kNotLoaded)};
  out.load_from = at;
  times_[op.result()] = std::move(out);
  loads_.push_back(op.result());
}

void RegionSchedule::store(const ir::Op& op) {
  const ir::Value* value = op.operands[0];
  Box box;
  const ir::Value* base = box_of(op.operands[1], op, 2, value->type.shape(), box);
  int address = ready(op.operands[1]);
  for (size_t k = 2; k < op.operands.size(); ++k)
    address = std::max(address, ready(op.operands[k]));
  const bool adds = op.bool_attr_or("add", false);
  const auto n = static_cast<size_t>(registers_of(value->type).count());
  for (size_t k = 0; k < n; ++k) {
    int at = std::max(address, register_ready(value, k, n));
    if (adds)
      at = issue(CostUnit::kValu, issue(CostUnit::kLoad, address) + 1) + units().valu_latency;
    box.cycle = std::max(box.cycle, issue(CostUnit::kStore, at));
  }
  last_store_ = std::max(last_store_, box.cycle);
  stores_[base].push_back(std::move(box));
}

// The memory behind a ref, and which part of it is touched, as far as constants tell.
const ir::Value* RegionSchedule::box_of(const ir::Value* ref, const ir::Op& op, size_t first_index,
                                        const ir::Shape& sizes, Box& box) {
  const bool direct = !ref->op || ref->op->info().effect != Effect::kView;
  if (direct && ref->type.shape().size() == sizes.size()) {
    for (size_t d = 0; d < sizes.size() && first_index + d < op.operands.size(); ++d) {
      const ir::Value* index = op.operands[first_index + d];
      if (!is_constant(index)) {
        box.bounds.clear();
        break;
      }
      const int64_t from = (*index->op->find("value"))->ints.at(0);
      box.bounds.emplace_back(from, from + sizes[d]);
    }
  }
  while (ref->op && ref->op->info().effect == Effect::kView) ref = ref->op->operands[0];
  return ref;
}

void RegionSchedule::broadcast(const ir::Op& op) {
  const ir::Value* source = op.operands[0];
  const Registers to = registers_of(op.result()->type);
  registers(source);
  const Times in = times(source);
  Times out{std::vector<int>(static_cast<size_t>(to.count()), 0), true};
  if (!source->type.is_vector()) {
    const int at = is_constant(source) ? 0 : issue(CostUnit::kValu, in.ready[0]) + 1;
    std::ranges::fill(out.ready, at);
    return define(op, std::move(out));
  }
  const ir::Shape& s = source->type.shape();
  const bool from_lane = !s.empty() && s.back() == 1 && op.result()->type.shape().back() > 1;
  out.lanes_alike = from_lane || in.lanes_alike;
  std::vector<int> ready = in.ready;
  if (from_lane && !in.lanes_alike)  // one lane to all of them
    for (int& r : ready) r = issue(CostUnit::kXlu, r) + units().lane_permute_latency;
  const Registers from = registers_of(source->type);
  for (size_t k = 0; k < out.ready.size(); ++k) {
    const auto i = static_cast<int64_t>(k);
    const int64_t col = i % to.cols % from.cols, row = i / to.cols % to.rows % from.rows,
                  outer = i / (to.cols * to.rows) % from.outer;
    const auto at = static_cast<size_t>((outer * from.rows + row) * from.cols + col);
    // A reduced vector keeps the registers of its rows.
    out.ready[k] = ready.size() == static_cast<size_t>(from.count())
                       ? ready[at]
                       : ready[k * ready.size() / out.ready.size()];
  }
  define(op, std::move(out));
}

// One register of partial results, then once across its lanes.
int RegionSchedule::lane_reduce(const std::vector<int>& registers) {
  int sum = registers[0];
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
  sum = level[0];
  return issue(CostUnit::kXlu, sum) + units().lane_reduce_latency;
}

void RegionSchedule::reduce(const ir::Op& op) {
  const ir::Value* source = op.operands[0];
  const Registers from = registers_of(source->type);
  const auto rank = static_cast<int64_t>(source->type.shape().size());
  bool lanes = false, rows = false, outer = false;
  for (const int64_t d : op.ints_attr("reduction_dims"))
    (d == rank - 1 ? lanes : d == rank - 2 ? rows : outer) = true;
  const std::vector<int> in = registers(source);
  const auto at = [&](int64_t o, int64_t r, int64_t c) {
    const auto k = static_cast<size_t>((o * from.rows + r) * from.cols + c);
    return in[k * in.size() / static_cast<size_t>(from.count())];
  };
  const int64_t outers = outer ? 1 : from.outer, row_blocks = rows ? 1 : from.rows,
                col_blocks = lanes ? 1 : from.cols;
  Times out{{}, lanes};
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
          t = lane_reduce(parts);
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
        out.ready.push_back(t);
      }
  // One per row block, whatever shape the result's type has: it lies in the registers it was made
  // in.
  define(op, std::move(out));
}

// The largest, then the least index of those that equal it.
void RegionSchedule::reduce_index(const ir::Op& op) {
  const Registers from = registers_of(op.operands[0]->type);
  const std::vector<int> in = registers(op.operands[0]);
  Times out{{}, true};
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
    out.ready.push_back(lane_reduce(indices));
  }
  define(op, std::move(out));
}

void RegionSchedule::transpose(const ir::Op& op) {
  const std::vector<int> in = registers(op.operands[0]);
  const auto n = static_cast<size_t>(registers_of(op.result()->type).count());
  int last = 0;
  for (const int r : in) last = std::max(last, issue(CostUnit::kXlu, r));
  Times out;
  for (size_t k = 0; k < n; ++k)
    out.ready.push_back(issue(CostUnit::kXlu, last + units().transpose_latency) + 1);
  define(op, std::move(out));
}

// Slices, concatenations, rotations, reshapes: free where whole registers move; else each register
// of the result is put together from parts of others.
void RegionSchedule::move(const ir::Op& op) {
  const ir::Type to = op.result()->type;
  if (op.code == OpCode::kVectorShapeCast &&
      (times(op.operands[0]).lanes_alike ||
       same_but_ones(op.operands[0]->type.shape(), to.shape())))
    return define(op, times(op.operands[0]));
  const auto n = static_cast<size_t>(registers_of(to).count());
  int at = ready(op);
  const int64_t lanes = chips::kTpu7x.lanes, rows = register_rows(to.elem());
  const auto aligned = [&](const ir::Shape& s) {
    return (s.empty() || s.back() % lanes == 0) && (s.size() < 2 || s[s.size() - 2] % rows == 0);
  };
  bool across_lanes = false, free = false;
  if (op.code == OpCode::kTpuDynamicRotate) {
    across_lanes = op.int_attr("dimension") == to.rank() - 1;
  } else if (op.code == OpCode::kVectorExtractStridedSlice) {
    const auto& offsets = (*op.find("offsets"));
    ir::Shape starts;
    for (const ir::Attr& a : offsets->array) starts.push_back(a->ints.at(0));
    if (starts.empty()) starts = offsets->ints;
    free = aligned(starts);
    across_lanes = !starts.empty() && starts.back() % lanes != 0;
  } else {
    free = aligned(to.shape());
    for (const ir::Value* v : op.operands) free = free && aligned(v->type.shape());
    const ir::Shape& from = op.operands[0]->type.shape();
    across_lanes = !from.empty() && !to.shape().empty() && from.back() != to.shape().back();
    if (op.code == OpCode::kVectorShapeCast)
      free =
          free || (!across_lanes && (from.size() < 2 || to.shape().size() < 2 ||
                                     from[from.size() - 2] == to.shape()[to.shape().size() - 2]));
  }
  Times out{{}, op.operands.size() == 1 && times(op.operands[0]).lanes_alike};
  const Times& in = times(op.operands[0]);  // all loaded by ready()
  for (size_t k = 0; k < n; ++k) {
    if (free) {
      out.ready.push_back(op.operands.size() == 1 ? in.ready[k % in.ready.size()] : at);
    } else if (across_lanes) {
      const int moved = issue(CostUnit::kXlu, at) + units().lane_permute_latency;
      out.ready.push_back(issue(CostUnit::kValu, moved) + units().valu_latency);
    } else {
      const int moved = issue(CostUnit::kValu, at) + units().valu_latency;
      out.ready.push_back(issue(CostUnit::kValu, moved) + units().valu_latency);
    }
  }
  define(op, std::move(out));
}

void RegionSchedule::gather(const ir::Op& op) {
  const ir::Type to = op.result()->type;
  const auto& dims = op.ints_attr("dimensions");
  const bool lanes = !dims.empty() && dims[0] == to.rank() - 1;
  const int at = ready(op);
  Times out;
  for (int64_t k = 0; k < registers_of(to).count(); ++k)
    out.ready.push_back(lanes ? issue(CostUnit::kXlu, at) + units().lane_permute_latency
                              : issue(CostUnit::kValu, at) + units().valu_latency);
  define(op, std::move(out));
}

// An element of a register to the scalar unit.
void RegionSchedule::extract(const ir::Op& op) {
  int at = ready(op);
  if (op.result()->type.is_vector()) return define(op, {{at}});
  bool first = true;
  for (const int64_t p : op.ints_attr("static_position")) first = first && p == 0;
  if (!first) at = issue(CostUnit::kXlu, at) + units().lane_permute_latency;
  define(op, {{issue(CostUnit::kStore, at) + units().to_scalar_latency}});
}

void RegionSchedule::add(const ir::Op& op) {
  switch (op.code) {
    case OpCode::kVectorBroadcast:
      return broadcast(op);
    case OpCode::kVectorMultiReduction:
      return reduce(op);
    case OpCode::kTpuReduceIndex:
      return reduce_index(op);
    case OpCode::kTpuTranspose:
      return transpose(op);
    case OpCode::kVectorShapeCast:
    case OpCode::kVectorExtractStridedSlice:
    case OpCode::kTpuConcatenate:
    case OpCode::kTpuDynamicRotate:
      return move(op);
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
      return define(op,
                    {{slots_.place(CostUnit::kScalar, ready(op)) + units().scalar_load_latency}});
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
      return define(op, {{at}});
    }
    case Effect::kPure:
    case Effect::kPrngState:
      if (!op.results.empty() && op.result()->type.is_vector()) return elementwise(op);
      return scalar(op);
    case Effect::kAlloc:
      return define(op, {{0}});
    default:
      return;
  }
}

int RegionSchedule::add_event(const ir::Op& op) {
  const chips::UnitCosts& u = units();
  int at = std::max(cursor_, ready(op));
  int bundles = 0;
  switch (op.info().effect) {
    case Effect::kDmaStart: {
      // What it reads has been stored, what it overwrites has been read.
      load_what_is_left();
      at = std::max({at, last_store_ + 1, last_load_ + 1});
      bundles = start_bundles(op, bounds_checks_);
      break;
    }
    case Effect::kSignal:
      at = std::max(at, last_store_ + 1);
      bundles = op.operands.size() > 2 ? u.signal : 1;
      break;
    default:
      load_what_is_left();
      at = std::max(at, length());
      bundles = u.wait;
      break;
  }
  cursor_ = chain(at, bundles);
  if (!op.results.empty()) define(op, {{cursor_ + u.scalar_load_latency}});
  return cursor_;
}

void RegionSchedule::end_with_branch(const ir::Value* condition) {
  const int known = condition ? ready(condition) : chain(0, 2);
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
