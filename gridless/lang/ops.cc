#include "gridless/lang/ops.h"

#include <fmt/format.h>

#include <tuple>

#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::Attr;
using ir::OpCode;
using ir::Type;

namespace {

Vec unary(OpCode code, Vec a, Where w) {
  Kernel& k = *a.kernel();
  if (!ir::is_float(a.elem())) {
    k.error("shape_mismatch", fmt::format("{} of {}", ir::info(code).name, a.value()->type.str()),
            "this function takes floats: cast() first", w);
    return a;
  }
  std::vector<ir::NamedAttr> attrs;
  if (code != OpCode::kTpuLogistic) attrs.push_back(fastmath());
  return Vec(&k, k.emit1(code, {a.value()}, a.value()->type, std::move(attrs), w));
}

}  // namespace

Vec zeros(Kernel& k, Elem e, Shape shape, Where w) { return k.constant(std::move(shape), e, 0, w); }
Vec full(Kernel& k, Elem e, Shape shape, double value, Where w) {
  return k.constant(std::move(shape), e, value, w);
}

Vec iota(Kernel& k, Shape shape, int axis, Where w) {
  if (shape.size() < 2 || axis < 0 || axis >= static_cast<int>(shape.size())) {
    k.error("shape_mismatch", fmt::format("iota along axis {} of {}", axis, ir::shape_str(shape)),
            "vectors have two dimensions or more, and the axis is one of them", w);
    return k.constant({8, 128}, Elem::kI32, 0, w);
  }
  return Vec(&k, k.emit1(OpCode::kTpuIota, {}, Type::vector(std::move(shape), Elem::kI32),
                         {{"dimensions", Attr::dense_array(Elem::kI32, {axis})}}, w));
}

Vec max(Vec a, VecArg b) { return binary(OpCode::kArithMaximumf, OpCode::kArithMaxsi, a, b); }
Vec min(Vec a, VecArg b) { return binary(OpCode::kArithMinimumf, OpCode::kArithMinsi, a, b); }
Vec neg(Vec a, Where w) { return unary(OpCode::kArithNegf, a, w); }
Vec abs(Vec a, Where w) {
  if (ir::is_float(a.elem())) return unary(OpCode::kMathAbsf, a, w);
  Kernel& k = *a.kernel();
  return Vec(&k, k.emit1(OpCode::kMathAbsi, {a.value()}, a.value()->type, {}, w));
}
Vec exp(Vec a, Where w) { return unary(OpCode::kMathExp, a, w); }
Vec exp2(Vec a, Where w) { return unary(OpCode::kMathExp2, a, w); }
Vec log(Vec a, Where w) { return unary(OpCode::kMathLog, a, w); }
Vec tanh(Vec a, Where w) { return unary(OpCode::kMathTanh, a, w); }
Vec sin(Vec a, Where w) { return unary(OpCode::kMathSin, a, w); }
Vec cos(Vec a, Where w) { return unary(OpCode::kMathCos, a, w); }
Vec sqrt(Vec a, Where w) { return unary(OpCode::kMathSqrt, a, w); }
Vec rsqrt(Vec a, Where w) { return unary(OpCode::kMathRsqrt, a, w); }
Vec erf(Vec a, Where w) { return unary(OpCode::kMathErf, a, w); }
Vec log1p(Vec a, Where w) { return unary(OpCode::kMathLog1p, a, w); }
Vec floor(Vec a, Where w) { return unary(OpCode::kMathFloor, a, w); }
Vec ceil(Vec a, Where w) { return unary(OpCode::kMathCeil, a, w); }
Vec round_even(Vec a, Where w) { return unary(OpCode::kMathRoundeven, a, w); }

Vec pow(Vec a, VecArg b) { return binary(OpCode::kMathPowf, std::nullopt, a, b); }
Vec remainder(Vec a, VecArg b) { return binary(OpCode::kArithRemf, OpCode::kArithRemsi, a, b); }
Vec divide_ints(Vec a, VecArg b) {
  if (ir::is_float(a.elem())) {
    a.kernel()->error("shape_mismatch", fmt::format("divide_ints() of {}", a.value()->type.str()),
                      "write a / b for floats", b.where);
    return a;
  }
  return binary(OpCode::kArithDivf, OpCode::kArithDivsi, a, b);
}

Vec reciprocal(Vec a, bool approximate, Where w) {
  Kernel& k = *a.kernel();
  if (a.elem() != Elem::kF32) {
    k.error("shape_mismatch", fmt::format("reciprocal() of {}", a.value()->type.str()),
            "cast() to f32 first", w);
    return a;
  }
  return Vec(
      &k,
      k.emit1(OpCode::kTpuReciprocal, {a.value()}, a.value()->type,
              {{"approx", Attr::boolean(approximate)}, {"full_range", Attr::boolean(false)}}, w));
}

Vec logistic(Vec a, Where w) {
  // Spelled out: tpu.logistic is newer than version 13 of the stable dialect.
  Kernel& k = *a.kernel();
  const Vec one = k.constant(a.shape(), a.elem(), 1.0, w);
  return one / VecArg(one + VecArg(exp(neg(a, w), w), w), w);
}

Vec where(Vec condition, VecArg then, VecArg otherwise) {
  Kernel& k = *condition.kernel();
  Vec a, b;
  if (then.kind == VecArg::kVec) {
    std::tie(a, b) = unify(then.vec, otherwise);
  } else if (otherwise.kind == VecArg::kVec) {
    std::tie(b, a) = unify(otherwise.vec, then);
  } else {
    k.error("shape_mismatch", "where() between two numbers", "one side must be a vector",
            then.where);
    return condition;
  }
  Vec c = condition;
  if (c.shape() != a.shape()) c = broadcast(c, a.shape(), then.where);
  if (c.elem() != Elem::kI1) {
    k.error("shape_mismatch", fmt::format("a condition of {}", c.value()->type.str()),
            "compare first: the condition is i1", then.where);
    return a;
  }
  return Vec(&k, k.emit1(OpCode::kArithSelect, {c.value(), a.value(), b.value()}, a.value()->type,
                         {}, then.where));
}

Scalar where(Scalar condition, Scalar then, Scalar otherwise, Where w) {
  if (condition.is_constant()) return condition.constant() ? then : otherwise;
  Kernel& k = *condition.kernel();
  const bool floats = ir::is_float(then.elem()) || ir::is_float(otherwise.elem());
  const Elem e = floats ? Elem::kF32 : Elem::kI32;
  if (condition.elem() != Elem::kI1) {
    k.error("shape_mismatch", fmt::format("a condition of {}", spelling(condition.elem())),
            "compare it with something: the condition is an i1", w);
    return then;
  }
  return Scalar(&k, k.emit1(OpCode::kArithSelect,
                            {condition.value(), k.as_elem(then, e, w), k.as_elem(otherwise, e, w)},
                            Type::scalar(e), {}, w));
}

Vec shift_left(Vec a, VecArg bits) { return bitwise(OpCode::kArithShli, a, bits); }
Vec shift_right_logical(Vec a, VecArg bits) { return bitwise(OpCode::kArithShrui, a, bits); }

Vec shift_right(Vec a, VecArg bits) { return bitwise(OpCode::kArithShrsi, a, bits); }

namespace {

Vec count(OpCode code, Vec a, Where w) {
  Kernel& k = *a.kernel();
  if (ir::is_float(a.elem())) {
    k.error("shape_mismatch", fmt::format("bits of {}", a.value()->type.str()),
            "bitcast() to an integer element first", w);
    return a;
  }
  return Vec(&k, k.emit1(code, {a.value()}, a.value()->type, {}, w));
}

}  // namespace

Vec leading_zeros(Vec a, Where w) { return count(OpCode::kMathCtlz, a, w); }
Vec count_ones(Vec a, Where w) { return count(OpCode::kMathCtpop, a, w); }

Vec cast(Vec a, Elem e, Where w) {
  if (a.elem() == e) return a;
  Kernel& k = *a.kernel();
  const int from = ir::bit_width(a.elem()), to = ir::bit_width(e);
  const bool ff = ir::is_float(a.elem()), tf = ir::is_float(e);
  const auto make = [&](OpCode code) {
    return Vec(&k, k.emit1(code, {a.value()}, Type::vector(a.shape(), e), {}, w));
  };
  if (ff && tf) {
    if (from == to) {
      k.error("shape_mismatch",
              fmt::format("cast of {} to {}", a.value()->type.str(), ir::spelling(e)),
              "go through f32", w);
      return a;
    }
    return make(to > from ? OpCode::kArithExtf : OpCode::kArithTruncf);
  }
  if (!ff && !tf) {
    if (e == Elem::kI1) return a != VecArg(0, w);
    if (to == from) return a;
    if (to < from) return make(OpCode::kArithTrunci);
    return make(a.elem() == Elem::kI1 ? OpCode::kArithExtui : OpCode::kArithExtsi);
  }
  if (tf) {
    if (a.elem() == Elem::kI1) return cast(cast(a, Elem::kI32, w), e, w);
    return make(OpCode::kArithSitofp);
  }
  return make(OpCode::kArithFptosi);
}

Vec bitcast(Vec a, Elem e, Where w) {
  Kernel& k = *a.kernel();
  Shape s = a.shape();
  const int from = ir::bit_width(a.elem()), to = ir::bit_width(e);
  if (s.size() < 2 || (s[s.size() - 2] * from) % to != 0) {
    k.error("shape_mismatch",
            fmt::format("bitcast of {} to {}", a.value()->type.str(), ir::spelling(e)),
            "needs two dimensions, the second-minor divisible by the ratio of the widths", w);
    return a;
  }
  s[s.size() - 2] = s[s.size() - 2] * from / to;
  return Vec(&k, k.emit1(OpCode::kTpuBitcast, {a.value()}, Type::vector(s, e), {}, w));
}

Scalar cast(Scalar a, Elem e, Where w) {
  Kernel* k = a.kernel();
  if (!k || a.elem() == e) return a;
  const bool ff = ir::is_float(a.elem()), tf = ir::is_float(e);
  OpCode code = OpCode::kArithSitofp;
  if (ff && !tf) code = OpCode::kArithFptosi;
  if (!ff && !tf) code = a.elem() == Elem::kI1 ? OpCode::kArithExtui : OpCode::kArithTrunci;
  return Scalar(k, k->emit1(code, {a.value()}, Type::scalar(e), {}, w));
}

}  // namespace gridless::lang
