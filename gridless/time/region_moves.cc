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

// A register with its lanes or its rows moved. What is moved by one operation is so for all of its
// results.
int RegionSchedule::rotated(std::map<int, int>& done, int number, bool across_lanes) {
  if (number == kConstant) return kConstant;
  const auto [it, fresh] = done.try_emplace(number, 0);
  if (fresh)
    it->second = new_register([this, number, across_lanes](int) {
      const int at = register_ready(number);
      return across_lanes ? issue(CostUnit::kXlu, at) + units().lane_permute_latency
                          : issue(CostUnit::kValu, at) + units().valu_latency;
    });
  return it->second;
}

// A register that takes some of its elements from each of `parts`. Constants among them count once.
int RegionSchedule::combined(std::vector<int> parts) {
  const bool padded = std::erase(parts, kConstant) > 0;
  if (parts.empty()) return kConstant;
  if (parts.size() == 1 && !padded) return parts[0];
  return new_register([this, parts, padded](int) {
    int at = 0;
    for (const int p : parts) at = std::max(at, register_ready(p));
    for (size_t k = padded ? 0 : 1; k < parts.size(); ++k) at = issue(CostUnit::kValu, at) + 1;
    return at;
  });
}

void RegionSchedule::slice(const ir::Op& op) {
  const ir::Value* source = op.operands[0];
  const ir::Type from = source->type, to = op.result()->type;
  const ir::Attr* offsets = op.find("offsets");
  ir::Shape starts = (*offsets)->ints;
  if (starts.empty())
    for (const ir::Attr& a : (*offsets)->array) starts.push_back(a->ints.at(0));
  const size_t rank = from.shape().size();
  starts.resize(rank, 0);
  const ir::Shape grid = grid_of(from);
  const Held in = held(source);
  // A reduced vector may lie in fewer registers than its type says.
  const bool known = in.size() == static_cast<size_t>(registers_of(from).count());
  std::map<int, int> by_rows, by_lanes;
  Held out;
  for_each_place(grid_of(to), [&](const ir::Shape& at) {
    // The registers of the source in which the elements lie: one in most dimensions.
    ir::Shape first(rank), count(rank);
    for (size_t d = 0; d < rank; ++d) {
      const int64_t per = per_register(from, d), begin = starts[d] + at[d] * per;
      const int64_t end = std::min(begin + per, starts[d] + to.shape()[d]);
      first[d] = begin / per;
      count[d] = (end - 1) / per - first[d] + 1;
    }
    std::vector<int> parts;
    for_each_place(count, [&](ir::Shape part) {
      for (size_t d = 0; d < rank; ++d) part[d] = std::min(part[d] + first[d], grid[d] - 1);
      int r = in[known ? number_of(grid, part) : out.size() % in.size()];
      if (rank > 1 && starts[rank - 2] % per_register(from, rank - 2) != 0)
        r = rotated(by_rows, r, false);
      if (starts[rank - 1] % chips::kTpu7x.lanes != 0 && !lanes_.of(source))
        r = rotated(by_lanes, r, true);
      parts.push_back(r);
    });
    out.push_back(combined(std::move(parts)));
  });
  alias(op, std::move(out));
}

void RegionSchedule::concatenate(const ir::Op& op) {
  const ir::Type to = op.result()->type;
  const auto d = static_cast<size_t>(op.int_attr("dimension"));
  const int64_t per = per_register(to, d);
  const bool lanes = d + 1 == to.shape().size();
  // By register of the result: what lies in it.
  std::vector<std::vector<int>> parts(static_cast<size_t>(registers_of(to).count()));
  const ir::Shape grid = grid_of(to);
  int64_t offset = 0;
  for (const ir::Value* v : op.operands) {
    const int64_t length = v->type.shape()[d];
    const ir::Shape source_grid = grid_of(v->type);
    const auto n = static_cast<size_t>(registers_of(v->type).count());
    std::map<int, int> moved;
    for_each_place(source_grid, [&](const ir::Shape& at) {
      const int64_t begin = at[d] * per, end = std::min(begin + per, length);
      int r = register_of(v, number_of(source_grid, at), n);
      if (offset % per != 0) r = rotated(moved, r, lanes);
      for (int64_t tile = (offset + begin) / per; tile <= (offset + end - 1) / per; ++tile) {
        ir::Shape place = at;
        place[d] = tile;
        parts[number_of(grid, place)].push_back(r);
      }
    });
    offset += length;
  }
  Held out;
  for (std::vector<int>& p : parts) out.push_back(combined(std::move(p)));
  alias(op, std::move(out));
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
