#include "gridless/time/constants.h"

#include <algorithm>

#include "gridless/emulate/eval.h"
#include "gridless/time/registers.h"

namespace gridless::time {
namespace {

// Larger ones than masks of activations are not worth it.
constexpr int64_t kMostElements = int64_t{1} << 15;

bool may_be_known(const ir::Op& op) {
  if (op.results.size() != 1 || !op.regions.empty() || !emulate::is_evaluable(op.code))
    return false;
  const ir::Type type = op.result()->type;
  if (ir::is_float(type.elem()) || (type.is_vector() && type.num_elements() > kMostElements))
    return false;
  return type.is_vector() || op.code == ir::OpCode::kArithConstant;
}

}  // namespace

Constants::Constants(const ir::Op& function) {
  ir::walk(function, [&](const ir::Op& op) {
    if (!may_be_known(op)) return;
    std::vector<const emulate::RtValue*> args;
    for (const ir::Value* v : op.operands) {
      const auto it = values_.find(v);
      if (it == values_.end()) return;
      args.push_back(&it->second);
    }
    auto value = emulate::eval_pure(op, args);
    if (value) values_.emplace(op.result(), std::move(*value));
  });
}

std::optional<bool> Constants::decides(const ir::Value* mask, ir::Type type, size_t k) const {
  const auto it = values_.find(mask);
  if (it == values_.end() || !mask->type.is_vector() || mask->type.shape() != type.shape())
    return std::nullopt;
  const ir::Shape& shape = type.shape();
  const Registers grid = registers_of(type);
  const auto number = static_cast<int64_t>(k);
  const int64_t rows = shape.size() > 1 ? shape[shape.size() - 2] : 1, cols = shape.back();
  const int64_t row = number / grid.cols % grid.rows * register_rows(type.elem()),
                col = number % grid.cols * chips::kTpu7x.lanes,
                outer = number / (grid.cols * grid.rows);
  const std::span<const int32_t> bits = emulate::vector(it->second).i();
  const auto at = [&](int64_t r, int64_t c) {
    return bits[static_cast<size_t>((outer * rows + r) * cols + c)] != 0;
  };
  const bool first = at(row, col);
  for (int64_t r = row; r < std::min(rows, row + register_rows(type.elem())); ++r)
    for (int64_t c = col; c < std::min(cols, col + chips::kTpu7x.lanes); ++c)
      if (at(r, c) != first) return std::nullopt;
  return first;
}

}  // namespace gridless::time
