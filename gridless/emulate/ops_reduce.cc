// Reductions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gridless/emulate/elementwise.h"

namespace gridless::emulate {
namespace {

enum class Kind { kAdd, kMul, kMax, kMin, kMaxUnsigned, kMinUnsigned, kAnd, kOr, kXor, kUnknown };

Kind kind_of(std::string_view text) {
  // "#vector.kind<maximumf>"
  const size_t open = text.find('<');
  const std::string_view name =
      open == std::string_view::npos ? text : text.substr(open + 1, text.find('>') - open - 1);
  if (name == "add") return Kind::kAdd;
  if (name == "mul") return Kind::kMul;
  if (name == "maximumf" || name == "maxnumf" || name == "maxsi") return Kind::kMax;
  if (name == "minimumf" || name == "minnumf" || name == "minsi") return Kind::kMin;
  if (name == "maxui") return Kind::kMaxUnsigned;
  if (name == "minui") return Kind::kMinUnsigned;
  if (name == "and") return Kind::kAnd;
  if (name == "or") return Kind::kOr;
  if (name == "xor") return Kind::kXor;
  return Kind::kUnknown;
}

// Calls f(o, k) for every element k of the input in row-major order, o being the element of the
// result it is reduced into: so each result sees its elements in row-major order of the reduced
// indices.
template <typename F>
void reduce_into(const Shape& shape, const std::vector<bool>& reduced, const F& f) {
  Shape stride(shape.size(), 0);
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (reduced[d]) continue;
    stride[d] = step;
    step *= shape[d];
  }
  int64_t total = 1;
  for (int64_t s : shape) total *= s;
  const int64_t run = shape.empty() ? 1 : shape.back();
  const int64_t run_step = shape.empty() ? 0 : stride.back();
  Shape at(shape.size(), 0);
  int64_t o = 0;
  for (int64_t k = 0; k < total; k += run) {
    for (int64_t j = 0; j < run; ++j)
      f(static_cast<size_t>(o + j * run_step), static_cast<size_t>(k + j));
    for (size_t d = shape.size() - (shape.empty() ? 0 : 1); d-- > 0;) {
      o += stride[d];
      if (++at[d] < shape[d]) break;
      o -= stride[d] * shape[d];
      at[d] = 0;
    }
  }
}

template <typename T, typename F>
void fold(const Shape& shape, const std::vector<bool>& reduced, std::span<const T> x,
          std::span<T> y, const F& f) {
  reduce_into(shape, reduced, [&](size_t o, size_t k) { y[o] = f(y[o], x[k]); });
}

}  // namespace

RtValue PureOps::VectorMultiReduction(const ir::Op& op) const {
  const Vector& in = vector(*args[0]);
  const Type type = op.result()->type;
  const Kind kind = kind_of(op.text_attr("kind"));
  std::vector<bool> reduced(in.shape().size(), false);
  for (int64_t d : op.ints_attr("reduction_dims")) reduced[static_cast<size_t>(d)] = true;
  // A reduction of all dimensions is a scalar: fold into a vector of one, then unwrap.
  const bool to_scalar = !type.is_vector();
  Vector out(to_scalar ? Type::vector({1}, in.elem()) : type);
  if (in.is_float()) {
    const auto y = out.mutable_f();
    if (to_scalar) {
      y[0] = scalar(*args[1]).f;
    } else {
      std::ranges::copy(vector(*args[1]).f(), y.begin());
    }
    const auto x = in.f();
    switch (kind) {
      case Kind::kAdd:
        fold(in.shape(), reduced, x, y, [](float a, float b) { return a + b; });
        break;
      case Kind::kMul:
        fold(in.shape(), reduced, x, y, [](float a, float b) { return a * b; });
        break;
      case Kind::kMax:
        fold(in.shape(), reduced, x, y, maximum);
        break;
      case Kind::kMin:
        fold(in.shape(), reduced, x, y, minimum);
        break;
      default:
        fault(op, "invalid_ir",
              "vector.multi_reduction: unknown kind " + std::string(op.text_attr("kind")));
    }
    round_to(in.elem(), y);
    if (to_scalar) return Scalar{.elem = in.elem(), .f = y[0]};
    return out;
  }
  const auto y = out.mutable_i();
  if (to_scalar) {
    y[0] = static_cast<int32_t>(scalar(*args[1]).i);
  } else {
    std::ranges::copy(vector(*args[1]).i(), y.begin());
  }
  const Elem e = in.elem();
  const auto step = [&](int32_t a, int32_t b) -> int32_t {
    const auto ua = static_cast<uint32_t>(as_unsigned(e, a)),
               ub = static_cast<uint32_t>(as_unsigned(e, b));
    switch (kind) {
      case Kind::kAdd:
        return static_cast<int32_t>(wrap(e, int64_t{a} + b));
      case Kind::kMul:
        return static_cast<int32_t>(wrap(e, int64_t{a} * b));
      case Kind::kMax:
        return std::max(a, b);
      case Kind::kMin:
        return std::min(a, b);
      case Kind::kMaxUnsigned:
        return ua > ub ? a : b;
      case Kind::kMinUnsigned:
        return ua < ub ? a : b;
      case Kind::kAnd:
        return a & b;
      case Kind::kOr:
        return a | b;
      case Kind::kXor:
        return a ^ b;
      case Kind::kUnknown:
        break;
    }
    fault(op, "invalid_ir",
          "vector.multi_reduction: unknown kind " + std::string(op.text_attr("kind")));
  };
  fold(in.shape(), reduced, in.i(), y, step);
  if (to_scalar) return make_int(e, y[0]);
  return out;
}

// The first index of the largest (smallest) element along an axis; a NaN never wins.
RtValue PureOps::TpuReduceIndex(const ir::Op& op) const {
  const Vector& in = vector(*args[0]);
  const auto axis = static_cast<size_t>(op.int_attr("axis"));
  const bool smallest = op.text_attr("kind").find("min") != std::string_view::npos;
  std::vector<bool> reduced(in.shape().size(), false);
  reduced[axis] = true;
  int64_t inner = 1;
  for (size_t d = axis + 1; d < in.shape().size(); ++d) inner *= in.shape()[d];
  const auto value = [&](size_t k) {
    const double v =
        in.is_float() ? static_cast<double>(in.f()[k]) : static_cast<double>(in.i()[k]);
    return smallest ? -v : v;
  };
  Vector out(op.result()->type);
  const auto y = out.mutable_i();
  std::ranges::fill(y, 0);
  std::vector<double> best(y.size(), -std::numeric_limits<double>::infinity());
  reduce_into(in.shape(), reduced, [&](size_t o, size_t k) {
    const double v = value(k);
    if (!(v > best[o])) return;
    best[o] = v;
    y[o] = static_cast<int32_t>(static_cast<int64_t>(k) / inner % in.shape()[axis]);
  });
  return out;
}

}  // namespace gridless::emulate
