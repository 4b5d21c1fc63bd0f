#include "gridless/time/lanes_alike.h"

#include <algorithm>

namespace gridless::time {
namespace {

using ir::Effect;
using ir::OpCode;

bool has(const std::vector<int64_t>& list, int64_t d) {
  return std::ranges::find(list, d) != list.end();
}

const std::vector<ir::Value*>& yielded(const ir::Op& op, size_t region) {
  return op.body(region).ops.back()->operands;
}

}  // namespace

// All lanes are taken to be alike until something says that they differ: what a loop carries is
// alike if it is so at first and each round keeps it so.
LanesAlike::LanesAlike(const ir::Op& function) {
  for (bool more = true; more;) {
    more = false;
    ir::walk(function, [&](const ir::Op& op) { more = settle(op) || more; });
  }
}

bool LanesAlike::all(const std::vector<ir::Value*>& values, size_t from) const {
  return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(from), values.end(),
                     [&](const ir::Value* v) { return of(v); });
}

bool LanesAlike::mark(const ir::Value* v, bool alike) {
  return !alike && v->type.is_vector() && differ_.insert(v).second;
}

// Values from `first` on go into the arguments of a block.
bool LanesAlike::pass_on(const std::vector<ir::Value*>& from, size_t first, const ir::Block& to,
                         size_t first_argument) {
  bool news = false;
  for (size_t k = first; k < from.size(); ++k)
    news = mark(to.args[first_argument + k - first].get(), of(from[k])) || news;
  return news;
}

bool LanesAlike::settle(const ir::Op& op) {
  bool news = false;
  const auto results = [&](const std::vector<ir::Value*>& from, size_t first) {
    for (size_t k = first; k < from.size(); ++k)
      news = mark(op.result(k - first), of(from[k])) || news;
  };
  switch (op.code) {
    case OpCode::kScfFor:
      news = pass_on(op.operands, 3, op.body(), 1);
      news = pass_on(yielded(op, 0), 0, op.body(), 1) || news;
      results(op.operands, 3);
      results(yielded(op, 0), 0);
      return news;
    case OpCode::kScfWhile:
      news = pass_on(op.operands, 0, op.body(0), 0);
      news = pass_on(yielded(op, 1), 0, op.body(0), 0) || news;
      news = pass_on(yielded(op, 0), 1, op.body(1), 0) || news;
      results(yielded(op, 0), 1);
      return news;
    case OpCode::kScfIf:
      for (size_t r = 0; r < 2; ++r)
        if (!op.results.empty()) results(yielded(op, r), 0);
      return news;
    case OpCode::kTpuRegion:
      if (!op.results.empty()) results(yielded(op, 0), 0);
      return news;
    default:
      if (op.results.size() == 1) news = mark(op.result(), result(op));
      return news;
  }
}

bool LanesAlike::result(const ir::Op& op) const {
  const auto last = [&](const ir::Value* v) { return v->type.rank() - 1; };
  switch (op.code) {
    case OpCode::kVectorBroadcast: {
      const ir::Shape& from = op.operands[0]->type.shape();
      return of(op.operands[0]) ||
             (!from.empty() && from.back() == 1 && op.result()->type.shape().back() > 1);
    }
    case OpCode::kVectorMultiReduction:
      return of(op.operands[0]) || has(op.ints_attr("reduction_dims"), last(op.operands[0]));
    case OpCode::kTpuReduceIndex:
      return op.int_attr("axis") == last(op.operands[0]);
    case OpCode::kTpuIota:
      return !has(op.ints_attr("dimensions"), last(op.result()));
    case OpCode::kTpuConcatenate:
      return op.int_attr("dimension") != last(op.result()) && all(op.operands);
    case OpCode::kTpuTranspose:
    case OpCode::kTpuDynamicGather:
    case OpCode::kTpuMatmul:
    case OpCode::kTpuMatmulPop:
    case OpCode::kTpuMatmulPopFifo:
      return false;
    default:
      return op.info().effect == Effect::kPure && all(op.operands);
  }
}

}  // namespace gridless::time
