// Slices, concatenations, reshapes and rotations in a RegionSchedule. Where whole registers move
// nothing happens but a change of names; else each register of the result is put together from
// parts of others.
#include <algorithm>

#include "gridless/time/region_schedule.h"
#include "gridless/time/registers.h"

namespace gridless::time {
namespace {

const chips::UnitCosts& units() { return chips::tpu7x_unit_costs(); }

// Elements of dimension d that one register holds.
int64_t per_register(const ir::Type& type, size_t d) {
  const size_t rank = type.shape().size();
  return d + 1 == rank ? chips::kTpu7x.lanes : d + 2 == rank ? register_rows(type.elem()) : 1;
}

// Registers of a vector in each dimension.
ir::Shape grid_of(const ir::Type& type) {
  ir::Shape out = type.shape();
  for (size_t d = 0; d < out.size(); ++d) out[d] = ceil_div(out[d], per_register(type, d));
  return out;
}

// Calls visit(position) for each place of the grid, the last dimension fastest.
template <typename Visit>
void for_each_place(const ir::Shape& grid, const Visit& visit) {
  ir::Shape at(grid.size(), 0);
  for (;;) {
    visit(at);
    size_t d = grid.size();
    while (d > 0 && ++at[d - 1] == grid[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

size_t number_of(const ir::Shape& grid, const ir::Shape& at) {
  int64_t n = 0;
  for (size_t d = 0; d < grid.size(); ++d) n = n * grid[d] + at[d];
  return static_cast<size_t>(n);
}

// Shapes that differ in dimensions of one only.
bool same_but_ones(ir::Shape a, ir::Shape b) {
  std::erase(a, 1);
  std::erase(b, 1);
  return a == b;
}

}  // namespace

int RegionSchedule::put_together(int at, bool across_lanes) {
  const int moved = across_lanes ? issue(CostUnit::kXlu, at) + units().lane_permute_latency
                                 : issue(CostUnit::kValu, at) + units().valu_latency;
  return issue(CostUnit::kValu, moved) + units().valu_latency;
}

void RegionSchedule::slice(const ir::Op& op) {
  const ir::Value* source = op.operands[0];
  const ir::Type from = source->type, to = op.result()->type;
  const ir::Attr* offsets = op.find("offsets");
  ir::Shape starts = (*offsets)->ints;
  if (starts.empty())
    for (const ir::Attr& a : (*offsets)->array) starts.push_back(a->ints.at(0));
  starts.resize(from.shape().size(), 0);
  const ir::Shape grid = grid_of(from), out_grid = grid_of(to);
  bool whole = true;
  for (size_t d = 0; d < starts.size(); ++d)
    whole = whole && starts[d] % per_register(from, d) == 0;
  const bool across_lanes = starts.back() % chips::kTpu7x.lanes != 0;
  // A reduced vector may lie in fewer registers than its type says.
  const Held& in = held(source);
  const bool known = in.size() == static_cast<size_t>(registers_of(from).count());
  std::vector<int> taken;
  for_each_place(out_grid, [&](ir::Shape at) {
    for (size_t d = 0; d < at.size(); ++d)
      at[d] = std::min(at[d] + starts[d] / per_register(from, d), grid[d] - 1);
    const size_t k = known ? number_of(grid, at) : taken.size() % in.size();
    taken.push_back(in[k]);
  });
  if (whole || lanes_.of(source)) return alias(op, std::move(taken));
  define_lazily(op, taken.size(), [this, taken, across_lanes](size_t k, int) {
    return put_together(register_ready(taken[k]), across_lanes);
  });
}

void RegionSchedule::concatenate(const ir::Op& op) {
  const ir::Type to = op.result()->type;
  const auto d = static_cast<size_t>(op.int_attr("dimension"));
  bool whole = true;
  for (const ir::Value* v : op.operands)
    whole = whole && v->type.shape()[d] % per_register(to, d) == 0 &&
            held(v).size() == static_cast<size_t>(registers_of(v->type).count());
  const ir::Shape grid = grid_of(to);
  if (whole) {
    std::vector<int> out(static_cast<size_t>(registers_of(to).count()));
    int64_t first = 0;
    for (const ir::Value* v : op.operands) {
      size_t k = 0;
      for_each_place(grid_of(v->type), [&](ir::Shape at) {
        at[d] += first;
        out[number_of(grid, at)] = held(v)[k++];
      });
      first += grid_of(v->type)[d];
    }
    return alias(op, std::move(out));
  }
  const int at = ready(op);
  std::vector<int> out;
  for (int64_t k = 0; k < registers_of(to).count(); ++k)
    out.push_back(put_together(at, d + 1 == to.shape().size()));
  define(op, out);
}

void RegionSchedule::reshape(const ir::Op& op) {
  const ir::Value* source = op.operands[0];
  const ir::Type to = op.result()->type;
  const ir::Shape& a = source->type.shape();
  const ir::Shape& b = to.shape();
  const Held& in = held(source);
  const bool across_lanes = !a.empty() && !b.empty() && a.back() != b.back();
  const auto last_two = [](const ir::Type& t) {
    const size_t rank = t.shape().size();
    return rank > 1 && t.shape()[rank - 2] % register_rows(t.elem()) == 0;
  };
  const bool same_rows = a.size() < 2 || b.size() < 2 || a[a.size() - 2] == b[b.size() - 2];
  const bool whole = !across_lanes && (same_rows || (last_two(source->type) && last_two(to)));
  if (lanes_.of(source) || same_but_ones(a, b) || whole) return alias(op, in);
  const int at = ready(op);
  std::vector<int> out;
  for (int64_t k = 0; k < registers_of(to).count(); ++k)
    out.push_back(put_together(at, across_lanes));
  define(op, out);
}

void RegionSchedule::rotate(const ir::Op& op) {
  const ir::Type to = op.result()->type;
  const bool across_lanes = op.int_attr("dimension") == to.rank() - 1;
  const int at = ready(op);
  std::vector<int> out;
  for (int64_t k = 0; k < registers_of(to).count(); ++k)
    out.push_back(put_together(at, across_lanes));
  define(op, out);
}

}  // namespace gridless::time
