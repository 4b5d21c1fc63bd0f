// The matrix units in a RegionSchedule.
#include <algorithm>
#include <numeric>

#include "gridless/time/region_schedule.h"
#include "gridless/time/registers.h"

namespace gridless::time {
namespace {

using ir::Elem;

const chips::UnitCosts& units() { return chips::tpu7x_unit_costs(); }

// How a format of weights goes into a matrix unit: `times` pushes for every `per` registers, and
// VALU instructions to make what is pushed.
struct PushForm {
  int times = 1, per = 1, valu = 0;
};

PushForm push_form(Elem e) {
  switch (ir::bit_width(e)) {
    case 32:  // two f32 registers are packed to one of bf16
      return {1, 2, 1};
    case 4:  // two registers of fp8, unpacked in two steps
      return {2, 1, 2};
    case 8:
      return ir::is_float(e) ? PushForm{1, 1, 0} : PushForm{2, 1, 1};
    default:
      return {};
  }
}

// Cycles by which a register of weights is loaded before its push.
constexpr int kLoadAhead = 8;

int64_t tile() { return chips::kTpu7x.mxu_size; }

// Marks cycles as the matrix unit's, as spans that neither touch nor overlap.
void cover(std::vector<std::pair<int, int>>& spans, int begin, int end) {
  const auto first = std::ranges::find_if(spans, [&](const auto& s) { return s.second >= begin; });
  auto last = first;
  for (; last != spans.end() && last->first <= end; ++last) {
    begin = std::min(begin, last->first);
    end = std::max(end, last->second);
  }
  spans.insert(spans.erase(first, last), {begin, end});
}

}  // namespace

int RegionSchedule::push_register(int mxu, int at) {
  MxuState& m = mxus_[static_cast<size_t>(mxu)];
  const int cycle = std::max(at, m.push_free);
  m.push_free = cycle + units().mxu_push_interval;
  m.last_push = std::max(m.last_push, cycle);
  cover(mxu_spans_, cycle, m.push_free);
  end_ = std::max(end_, m.push_free);
  return cycle;
}

// The rows go through once the weights are there; the cycle of the last of them.
int RegionSchedule::multiply_rows(int mxu, int64_t rows, int at) {
  MxuState& m = mxus_[static_cast<size_t>(mxu)];
  const int begin = std::max({at, m.multiply_free, m.last_push + units().mxu_push_to_multiply});
  m.multiply_free = begin + 4 * static_cast<int>(ceil_div(rows, chips::kTpu7x.sublanes));
  return m.multiply_free - 4;
}

// Columns in tiles of 256, taken by the two units in turn; rows of the weights in tiles of 256,
// whose products add up in the unit.
void RegionSchedule::matmul(const ir::Op& op) {
  const ir::Type lhs = op.operands[0]->type, rhs = op.operands[1]->type, to = op.result()->type;
  const int64_t cols = to.shape().back(),
                rows = to.rank() > 1 ? to.shape()[to.shape().size() - 2] : 1;
  int64_t batch = 1;
  for (int64_t d = 0; d + 2 < to.rank(); ++d) batch *= to.shape()[static_cast<size_t>(d)];
  const int64_t depth =
      std::max<int64_t>(1, lhs.num_elements() / std::max<int64_t>(1, batch * rows));
  const ir::Attr* precision = op.find("precision");
  const bool exact =
      precision && lhs.elem() == Elem::kF32 && (*precision)->text.find("fp32") != std::string::npos;
  const int lhs_ready = ready(op.operands[0]);
  const int64_t col_tiles = ceil_div(cols, tile()), depth_tiles = ceil_div(depth, tile());
  // Weights lie as depth x columns or the other way round.
  const Registers in = registers_of(rhs);
  const bool columns_last = rhs.shape().back() == cols;
  const int64_t down = columns_last ? in.rows : in.cols, across = columns_last ? in.cols : in.rows;
  const Registers out_registers = registers_of(ir::Type::vector({rows, cols}, Elem::kF32));
  const bool adds = !(op.operands[2]->op && op.operands[2]->op->code == ir::OpCode::kArithConstant);
  const std::vector<int> sums = all_ready(op.operands[2]);
  std::vector<int> out(static_cast<size_t>(batch * out_registers.count()), 0);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t c = 0; c < col_tiles; ++c) {
      const int mxu = static_cast<int>((b * col_tiles + c) % 2);
      int last = 0;
      for (int64_t d = 0; d < depth_tiles; ++d) {
        std::vector<int64_t> tile;  // registers
        for (int64_t y = d * down / depth_tiles; y < (d + 1) * down / depth_tiles; ++y)
          for (int64_t x = c * across / col_tiles; x < (c + 1) * across / col_tiles; ++x) {
            const int64_t r = columns_last ? y : x, column = columns_last ? x : y;
            tile.push_back(((b % in.outer) * in.rows + r) * in.cols + column);
          }
        for (int pass = 0; pass < (exact ? 3 : 1); ++pass) {
          push(mxu, op.operands[1], tile);
          last = multiply_rows(mxu, rows, lhs_ready);
        }
      }
      for (int64_t r = 0; r < out_registers.rows; ++r)
        for (int64_t half = 0; half < 2 && 2 * c + half < out_registers.cols; ++half) {
          const int popped = issue(CostUnit::kPop, last + units().mxu_latency);
          cover(mxu_spans_, last, popped);
          const auto k =
              static_cast<size_t>((b * out_registers.rows + r) * out_registers.cols + 2 * c + half);
          int done = popped + 1;
          if (adds)
            done = issue(CostUnit::kValu, std::max(done, sums[k * sums.size() / out.size()])) +
                   units().valu_latency;
          out[k] = done;
        }
    }
  const auto n = static_cast<size_t>(registers_of(to).count());
  if (out.size() != n) out.assign(n, *std::ranges::max_element(out));
  define(op, out);
}

void RegionSchedule::push(int mxu, const ir::Value* weights, const std::vector<int64_t>& which) {
  const PushForm form = push_form(weights->type.elem());
  const auto of = static_cast<size_t>(registers_of(weights->type).count());
  for (size_t k = 0; k < which.size(); ++k) {
    // Weights are loaded as the unit takes them, so that the other unit gets its own in time.
    const int soon = mxus_[static_cast<size_t>(mxu)].push_free - kLoadAhead;
    int at = register_ready(weights, static_cast<size_t>(which[k]), of, soon);
    if (k % static_cast<size_t>(form.per) != 0) continue;
    for (int v = 0; v < form.valu; ++v) at = issue(CostUnit::kValu, at) + units().valu_latency;
    for (int t = 0; t < form.times; ++t) push_register(mxu, at);
  }
}

void RegionSchedule::push_rhs(const ir::Op& op) {
  std::vector<int64_t> all(static_cast<size_t>(registers_of(op.operands[0]->type).count()));
  std::iota(all.begin(), all.end(), 0);
  push(static_cast<int>(op.int_attr("mxu_index")) & 1, op.operands[0], all);
}

void RegionSchedule::multiply(const ir::Op& op) {
  const int64_t mxu = op.int_attr("mxu_index") & 1;
  const int64_t rows = op.operands[0]->type.shape().at(0);
  const int last = multiply_rows(static_cast<int>(mxu), rows, ready(op));
  accumulators_[mxu * 1000 + op.int_attr_or("acc", 0)] = last;
}

// Sums of before the region have long come out.
void RegionSchedule::pop(const ir::Op& op) {
  const int64_t mxu = op.int_attr("mxu_index") & 1;
  const auto it = accumulators_.find(mxu * 1000 + op.int_attr_or("acc", 0));
  const int at = it == accumulators_.end() ? 0 : it->second + units().mxu_latency;
  std::vector<int> out;
  for (int64_t k = 0; k < registers_of(op.result()->type).count(); ++k)
    out.push_back(issue(CostUnit::kPop, at) + 1);
  if (at > 0) cover(mxu_spans_, it->second, out.back());
  define(op, out);
}

}  // namespace gridless::time
