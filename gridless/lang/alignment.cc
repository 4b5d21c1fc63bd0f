#include <fmt/format.h>

#include <numeric>

#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::OpCode;

namespace {

constexpr int64_t kEnough = 1 << 20;  // no tile needs more; keeps products from overflowing

int64_t divisor_of(const ir::Value* v, int depth) {
  if (!v->op || depth > 16) return 1;  // a loop counter, a carried value
  const ir::Op& op = *v->op;
  const auto operand = [&](size_t i) { return divisor_of(op.operands[i], depth + 1); };
  switch (op.code) {
    case OpCode::kArithConstant:
      return std::abs((*op.find("value"))->ints[0]);
    case OpCode::kArithMuli:
      return std::gcd(operand(0), kEnough) * std::gcd(operand(1), kEnough);
    case OpCode::kArithAddi:
    case OpCode::kArithSubi:
      return std::gcd(operand(0), operand(1));
    case OpCode::kArithSelect:
      return std::gcd(operand(1), operand(2));
    case OpCode::kArithIndexCast:
      return operand(0);
    case OpCode::kTpuAssumeMultiple:
      return op.int_attr("multiple");
    default:
      return 1;
  }
}

constexpr int64_t kLanes = 128;
constexpr int64_t kSublanes = 8;

}  // namespace

int64_t known_divisor(const Scalar& s) {
  return s.is_constant() ? std::abs(s.constant()) : divisor_of(s.value(), 0);
}

bool check_alignment(Kernel& k, ir::Type type, const std::vector<Scalar>& starts,
                     const Shape& sizes, bool is_copy, const char* what, Where w) {
  const size_t rank = starts.size();
  const Space space = type.space();
  if (rank < 2 || (space != Space::kHbm && space != Space::kVmem && space != Space::kAny))
    return true;
  const int bits = ir::bit_width(type.elem());
  // f32 rows are reached one by one; narrower elements share a 32-bit word with their neighbours.
  const std::pair<size_t, int64_t> rules[] = {{rank - 1, kLanes},
                                              {rank - 2, bits < 32 ? kSublanes : 1}};
  for (const auto& [d, tile] : rules) {
    const bool whole = starts[d].is_constant() && sizes[d] == type.shape()[d];
    if (whole || (!is_copy && starts[d].is_constant())) continue;
    const int64_t divisor = known_divisor(starts[d]);
    const bool start_fits = divisor % tile == 0;
    const bool size_fits = !is_copy || sizes[d] % tile == 0;
    if (start_fits && size_fits) continue;
    k.error(
        "misaligned",
        start_fits ? fmt::format("a {} of {} elements of dimension {} of {}", what, sizes[d], d,
                                 type.str())
        : starts[d].is_constant()
            ? fmt::format("a {} that starts at {} of dimension {} of {}", what,
                          starts[d].constant(), d, type.str())
            : fmt::format(
                  "a {} whose start in dimension {} of {} is not known to be a multiple of {}",
                  what, d, type.str(), tile),
        !start_fits
            ? fmt::format("the tile has {} elements there: multiply the start by {}, or promise it "
                          "with assume_multiple(start, {})",
                          tile, tile, tile)
            : fmt::format("take a multiple of {}, the tile, and slice() the loaded vector", tile),
        w);
    return false;
  }
  return true;
}

}  // namespace gridless::lang
