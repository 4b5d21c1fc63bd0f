#include <fmt/format.h>

#include <algorithm>

#include "gridless/base/check.h"
#include "gridless/lang/emit.h"
#include "gridless/lang/ops.h"

namespace gridless::lang {

using ir::Attr;
using ir::NamedAttr;
using ir::OpCode;
using ir::Type;

NamedAttr fastmath() { return {"fastmath", Attr::opaque("#arith.fastmath<none>")}; }
NamedAttr overflow_flags() { return {"overflowFlags", Attr::opaque("#arith.overflow<none>")}; }
NamedAttr segments(std::vector<int64_t> sizes) {
  return {"operandSegmentSizes", Attr::dense_array(Elem::kI32, std::move(sizes))};
}

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = std::max(x, y);
  }
  return out;
}

namespace {

Vec stretch(Vec v, const Shape& shape, Where w) {
  if (v.shape() == shape) return v;
  Kernel& k = *v.kernel();
  return Vec(&k,
             k.emit1(OpCode::kVectorBroadcast, {v.value()}, Type::vector(shape, v.elem()), {}, w));
}

}  // namespace

std::pair<Vec, Vec> unify(Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  if (b.kind == VecArg::kNumber) return {a, k.constant(a.shape(), a.elem(), b.number, b.where)};
  if (b.kind == VecArg::kScalar) {
    const Scalar s = b.scalar;
    if (s.is_constant()) {
      return {a, k.constant(a.shape(), a.elem(), s.real(), b.where)};
    }
    if (s.elem() != a.elem()) {
      k.error(
          "shape_mismatch",
          fmt::format("a vector of {} and a scalar of {}", spelling(a.elem()), spelling(s.elem())),
          "cast() one of them", b.where);
      return {a, a};
    }
    return {a, Vec(&k, k.emit1(OpCode::kVectorBroadcast, {s.value()},
                               Type::vector(a.shape(), a.elem()), {}, b.where))};
  }
  if (a.elem() != b.vec.elem()) {
    k.error("shape_mismatch",
            fmt::format("operands of {} and {}", a.value()->type.str(), b.vec.value()->type.str()),
            "cast() one of them: the vector unit does not convert by itself", b.where);
    return {a, a};
  }
  const std::optional<Shape> shape = broadcast_shape(a.shape(), b.vec.shape());
  if (!shape) {
    k.error("shape_mismatch",
            fmt::format("shapes {} and {} do not broadcast", ir::shape_str(a.shape()),
                        ir::shape_str(b.vec.shape())),
            "dimensions must be equal or 1, counted from the last", b.where);
    return {a, a};
  }
  return {stretch(a, *shape, b.where), stretch(b.vec, *shape, b.where)};
}

Vec binary(OpCode on_float, std::optional<OpCode> on_int, Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  const auto [x, y] = unify(a, b);
  const bool floats = ir::is_float(x.elem());
  if (!floats && !on_int) {
    k.error("shape_mismatch",
            fmt::format("this operation needs floats, not {}", spelling(x.elem())),
            "cast() to f32 first", b.where);
    return x;
  }
  const OpCode code = floats ? on_float : *on_int;
  std::vector<NamedAttr> attrs;
  if (floats) attrs.push_back(fastmath());
  if (code == OpCode::kArithAddi || code == OpCode::kArithSubi || code == OpCode::kArithMuli ||
      code == OpCode::kArithShli) {
    attrs.push_back(overflow_flags());
  }
  return Vec(&k, k.emit1(code, {x.value(), y.value()}, x.value()->type, std::move(attrs), b.where));
}

Vec bitwise(OpCode code, Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  const auto [x, y] = unify(a, b);
  if (ir::is_float(x.elem())) {
    k.error("shape_mismatch", fmt::format("bits of {} values", spelling(x.elem())),
            "bitcast() to an integer element first", b.where);
    return x;
  }
  std::vector<NamedAttr> attrs;
  if (code == OpCode::kArithShli) attrs.push_back(overflow_flags());
  return Vec(&k, k.emit1(code, {x.value(), y.value()}, x.value()->type, std::move(attrs), b.where));
}

namespace {

// Predicates in the order of MLIR's cmpi (signed) and cmpf (ordered; `ne` unordered).
enum Compare { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr int kIntPredicate[] = {0, 1, 2, 3, 4, 5};
constexpr int kFloatPredicate[] = {1, 13, 4, 5, 2, 3};

Vec compare(Compare c, Vec a, const VecArg& b) {
  Kernel& k = *a.kernel();
  const auto [x, y] = unify(a, b);
  const bool floats = ir::is_float(x.elem());
  std::vector<NamedAttr> attrs;
  if (floats) attrs.push_back(fastmath());
  attrs.emplace_back("predicate", Attr::i64(floats ? kFloatPredicate[c] : kIntPredicate[c]));
  return Vec(&k, k.emit1(floats ? OpCode::kArithCmpf : OpCode::kArithCmpi, {x.value(), y.value()},
                         Type::vector(x.shape(), Elem::kI1), std::move(attrs), b.where));
}

}  // namespace

Kernel* Vec::kernel() const {
  GRIDLESS_CHECK(kernel_, "an empty Vec is used: it was declared and never given a value");
  return kernel_;
}

int64_t Vec::dim(int i) const {
  const Shape& s = shape();
  return s[static_cast<size_t>(i < 0 ? static_cast<int>(s.size()) + i : i)];
}

Vec operator+(Vec a, VecArg b) { return binary(OpCode::kArithAddf, OpCode::kArithAddi, a, b); }
Vec operator-(Vec a, VecArg b) { return binary(OpCode::kArithSubf, OpCode::kArithSubi, a, b); }
Vec operator*(Vec a, VecArg b) { return binary(OpCode::kArithMulf, OpCode::kArithMuli, a, b); }
Vec operator/(Vec a, VecArg b) { return binary(OpCode::kArithDivf, std::nullopt, a, b); }
Vec operator&(Vec a, VecArg b) { return bitwise(OpCode::kArithAndi, a, b); }
Vec operator|(Vec a, VecArg b) { return bitwise(OpCode::kArithOri, a, b); }
Vec operator^(Vec a, VecArg b) { return bitwise(OpCode::kArithXori, a, b); }
Vec operator<(Vec a, VecArg b) { return compare(kLt, a, b); }
Vec operator<=(Vec a, VecArg b) { return compare(kLe, a, b); }
Vec operator>(Vec a, VecArg b) { return compare(kGt, a, b); }
Vec operator>=(Vec a, VecArg b) { return compare(kGe, a, b); }
Vec operator==(Vec a, VecArg b) { return compare(kEq, a, b); }
Vec operator!=(Vec a, VecArg b) { return compare(kNe, a, b); }

Vec operator+(NumberArg a, Vec b) { return b + VecArg(a.number, a.where); }
Vec operator*(NumberArg a, Vec b) { return b * VecArg(a.number, a.where); }
Vec operator-(NumberArg a, Vec b) {
  return b.kernel()->constant(b.shape(), b.elem(), a.number, a.where) - VecArg(b, a.where);
}
Vec operator/(NumberArg a, Vec b) {
  return b.kernel()->constant(b.shape(), b.elem(), a.number, a.where) / VecArg(b, a.where);
}
Vec operator-(NegatedVec a) {
  return ir::is_float(a.vec.elem()) ? neg(a.vec, a.where) : NumberArg(0, a.where) - a.vec;
}

}  // namespace gridless::lang
