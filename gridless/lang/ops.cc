#include "gridless/lang/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "gridless/lang/kernel.h"

namespace gridless::lang {

using ir::Attr;
using ir::NamedAttr;
using ir::OpCode;
using ir::Type;
using ir::Value;

// handles.cc
std::pair<Vec, Vec> unify(Vec a, const VecArg& b);
Vec binary(OpCode on_float, std::optional<OpCode> on_int, Vec a, const VecArg& b);
Vec bitwise(OpCode code, Vec a, const VecArg& b);

namespace {

const NamedAttr kFastmath = {"fastmath", Attr::opaque("#arith.fastmath<none>")};

Vec unary(OpCode code, Vec a, Where w) {
  Kernel& k = *a.kernel();
  if (!ir::is_float(a.elem())) {
    k.error("shape_mismatch", fmt::format("{} of {}", ir::info(code).name, a.value()->type.str()),
            "this function takes floats: cast() first", w);
    return a;
  }
  std::vector<NamedAttr> attrs;
  if (code != OpCode::kTpuLogistic) attrs.push_back(kFastmath);
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
Vec abs(Vec a, Where w) { return unary(OpCode::kMathAbsf, a, w); }
Vec exp(Vec a, Where w) { return unary(OpCode::kMathExp, a, w); }
Vec exp2(Vec a, Where w) { return unary(OpCode::kMathExp2, a, w); }
Vec log(Vec a, Where w) { return unary(OpCode::kMathLog, a, w); }
Vec tanh(Vec a, Where w) { return unary(OpCode::kMathTanh, a, w); }
Vec sin(Vec a, Where w) { return unary(OpCode::kMathSin, a, w); }
Vec cos(Vec a, Where w) { return unary(OpCode::kMathCos, a, w); }
Vec sqrt(Vec a, Where w) { return unary(OpCode::kMathSqrt, a, w); }
Vec rsqrt(Vec a, Where w) { return unary(OpCode::kMathRsqrt, a, w); }
Vec round_even(Vec a, Where w) { return unary(OpCode::kMathRoundeven, a, w); }

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
    k.error("shape_mismatch", "where() between two numbers", "one side must be a vector", then.where);
    return condition;
  }
  Vec c = condition;
  if (c.shape() != a.shape()) c = broadcast(c, a.shape(), then.where);
  if (c.elem() != Elem::kI1) {
    k.error("shape_mismatch", fmt::format("a condition of {}", c.value()->type.str()),
            "compare first: the condition is i1", then.where);
    return a;
  }
  return Vec(&k, k.emit1(OpCode::kArithSelect, {c.value(), a.value(), b.value()}, a.value()->type, {},
                         then.where));
}

Scalar where(Scalar condition, Scalar then, Scalar otherwise, Where w) {
  if (condition.is_constant()) return condition.constant() ? then : otherwise;
  Kernel& k = *condition.kernel();
  return Scalar(&k, k.emit1(OpCode::kArithSelect,
                            {condition.value(), k.as_i32(then, w), k.as_i32(otherwise, w)},
                            Type::scalar(Elem::kI32), {}, w));
}

Vec shift_left(Vec a, VecArg bits) { return bitwise(OpCode::kArithShli, a, bits); }
Vec shift_right_logical(Vec a, VecArg bits) { return bitwise(OpCode::kArithShrui, a, bits); }

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
      k.error("shape_mismatch", fmt::format("cast of {} to {}", a.value()->type.str(), ir::spelling(e)),
              "go through f32", w);
      return a;
    }
    return make(to > from ? OpCode::kArithExtf : OpCode::kArithTruncf);
  }
  if (!ff && !tf) {
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
    k.error("shape_mismatch", fmt::format("bitcast of {} to {}", a.value()->type.str(), ir::spelling(e)),
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

Vec broadcast(Vec a, Shape shape, Where w) {
  if (a.shape() == shape) return a;
  Kernel& k = *a.kernel();
  bool fits = a.shape().size() <= shape.size();
  for (size_t i = 0; fits && i < a.shape().size(); ++i) {
    const int64_t from = a.shape()[a.shape().size() - 1 - i], to = shape[shape.size() - 1 - i];
    fits = from == to || from == 1;
  }
  if (!fits) {
    k.error("shape_mismatch",
            fmt::format("broadcast of {} to {}", a.value()->type.str(), ir::shape_str(shape)),
            "only dimensions of 1 stretch, counted from the last", w);
    return a;
  }
  return Vec(&k, k.emit1(OpCode::kVectorBroadcast, {a.value()}, Type::vector(shape, a.elem()), {}, w));
}

Vec broadcast(Scalar a, Shape shape, Where w) {
  Kernel& k = *a.kernel();
  return Vec(&k, k.emit1(OpCode::kVectorBroadcast, {a.value()}, Type::vector(shape, a.elem()), {}, w));
}

Vec reshape(Vec a, Shape shape, Where w) {
  if (a.shape() == shape) return a;
  Kernel& k = *a.kernel();
  const Type type = Type::vector(std::move(shape), a.elem());
  if (type.num_elements() != a.value()->type.num_elements()) {
    k.error("shape_mismatch", fmt::format("reshape of {} to {}", a.value()->type.str(), type.str()),
            "the number of elements must stay the same", w);
    return a;
  }
  return Vec(&k, k.emit1(OpCode::kVectorShapeCast, {a.value()}, type, {}, w));
}

Vec slice(Vec a, const Shape& starts, const Shape& sizes, Where w) {
  if (sizes == a.shape()) return a;
  Kernel& k = *a.kernel();
  bool fits = starts.size() == a.shape().size() && sizes.size() == a.shape().size();
  for (size_t i = 0; fits && i < starts.size(); ++i) {
    fits = starts[i] >= 0 && sizes[i] > 0 && starts[i] + sizes[i] <= a.shape()[i];
  }
  if (!fits) {
    k.error("out_of_bounds",
            fmt::format("slice [{}] + [{}] of {}", ir::shape_str(starts), ir::shape_str(sizes),
                        a.value()->type.str()),
            "a slice lies inside the vector and names every dimension", w);
    return a;
  }
  const auto list = [](const Shape& s) {
    std::vector<Attr> out;
    for (int64_t x : s) out.push_back(Attr::i64(x));
    return Attr::array(std::move(out));
  };
  return Vec(&k, k.emit1(OpCode::kVectorExtractStridedSlice, {a.value()}, Type::vector(sizes, a.elem()),
                         {{"offsets", list(starts)},
                          {"sizes", list(sizes)},
                          {"strides", list(Shape(sizes.size(), 1))}},
                         w));
}

Vec concat(const std::vector<Vec>& parts, int axis, Where w) {
  if (parts.size() == 1) return parts[0];
  Kernel& k = *parts[0].kernel();
  Shape shape = parts[0].shape();
  const auto d = static_cast<size_t>(axis);
  std::vector<Value*> operands = {parts[0].value()};
  for (size_t i = 1; i < parts.size(); ++i) {
    Shape expected = parts[i].shape();
    const bool same_rank = expected.size() == shape.size() && d < shape.size();
    if (same_rank) expected[d] = shape[d];
    if (!same_rank || expected != shape || parts[i].elem() != parts[0].elem()) {
      k.error("shape_mismatch",
              fmt::format("concat of {} and {} along axis {}", parts[0].value()->type.str(),
                          parts[i].value()->type.str(), axis),
              "all other dimensions and the element must agree", w);
      return parts[0];
    }
    shape[d] += parts[i].shape()[d];
    operands.push_back(parts[i].value());
  }
  return Vec(&k, k.emit1(OpCode::kTpuConcatenate, std::move(operands),
                         Type::vector(shape, parts[0].elem()), {{"dimension", Attr::i32(axis)}}, w));
}

Vec transpose(Vec a, Where w) {
  Kernel& k = *a.kernel();
  if (a.shape().size() != 2) {
    k.error("shape_mismatch", fmt::format("transpose of {}", a.value()->type.str()),
            "only matrices: reshape() first", w);
    return a;
  }
  return Vec(&k, k.emit1(OpCode::kTpuTranspose, {a.value()},
                         Type::vector({a.shape()[1], a.shape()[0]}, a.elem()),
                         {{"permutation", Attr::dense_array(Elem::kI64, {1, 0})}}, w));
}

Vec roll(Vec a, Scalar shift, int axis, Where w) {
  Kernel& k = *a.kernel();
  return Vec(&k, k.emit1(OpCode::kTpuDynamicRotate, {a.value(), k.as_i32(shift, w)}, a.value()->type,
                         {{"dimension", Attr::integer(axis, Type::scalar(Elem::kSi32))}}, w));
}

namespace {

Vec reduce(Vec a, int axis, const char* float_kind, const char* int_kind, double float_init,
           int64_t int_init, Where w) {
  Kernel& k = *a.kernel();
  if (axis < 0 || axis >= static_cast<int>(a.shape().size()) || a.shape().size() < 2) {
    k.error("shape_mismatch", fmt::format("reduction over axis {} of {}", axis, a.value()->type.str()),
            "vectors have two dimensions or more, and the axis is one of them", w);
    return a;
  }
  Shape rest = a.shape(), kept = a.shape();
  rest.erase(rest.begin() + axis);
  kept[static_cast<size_t>(axis)] = 1;
  const bool floats = ir::is_float(a.elem());
  const Type type = Type::vector(rest, a.elem());
  const Attr init = floats ? Attr::dense_real(type, {float_init}) : Attr::dense_int(type, {int_init});
  Value* acc = k.emit1(OpCode::kArithConstant, {}, type, {{"value", init}}, w);
  Value* reduced = k.emit1(
      OpCode::kVectorMultiReduction, {a.value(), acc}, type,
      {{"kind", Attr::opaque(fmt::format("#vector.kind<{}>", floats ? float_kind : int_kind))},
       {"reduction_dims", Attr::dense_array(Elem::kI64, {axis})}},
      w);
  return reshape(Vec(&k, reduced), kept, w);
}

}  // namespace

Vec sum(Vec a, int axis, Where w) { return reduce(a, axis, "add", "add", 0.0, 0, w); }
Vec max_over(Vec a, int axis, Where w) {
  return reduce(a, axis, "maximumf", "maxsi", -std::numeric_limits<double>::infinity(),
                std::numeric_limits<int32_t>::min(), w);
}
Vec min_over(Vec a, int axis, Where w) {
  return reduce(a, axis, "minimumf", "minsi", std::numeric_limits<double>::infinity(),
                std::numeric_limits<int32_t>::max(), w);
}

Scalar extract(Vec a, const Shape& position, Where w) {
  Kernel& k = *a.kernel();
  const Vec one = slice(a, position, Shape(a.shape().size(), 1), w);
  const Vec cube = reshape(one, {1, 1, 1}, w);
  return Scalar(&k, k.emit1(OpCode::kVectorExtract, {cube.value()}, Type::scalar(a.elem()),
                            {{"static_position", Attr::dense_array(Elem::kI64, {0, 0, 0})}}, w));
}

namespace {

Vec matmul(Vec a, Vec b, Vec acc, bool nt, Where w) {
  Kernel& k = *a.kernel();
  const bool ranks = a.shape().size() == 2 && b.shape().size() == 2;
  const int64_t bk = ranks ? b.shape()[nt ? 1 : 0] : 0, bn = ranks ? b.shape()[nt ? 0 : 1] : 0;
  if (!ranks || a.shape()[1] != bk || acc.shape() != Shape{a.shape()[0], bn}) {
    k.error("shape_mismatch",
            fmt::format("{}: {} by {} onto {}", nt ? "dot_nt" : "dot", a.value()->type.str(),
                        b.value()->type.str(), acc.value()->type.str()),
            nt ? "shapes are [M,K], [N,K] and [M,N]" : "shapes are [M,K], [K,N] and [M,N]", w);
    return acc;
  }
  if (ir::bit_width(acc.elem()) != 32) {
    k.error("shape_mismatch", fmt::format("an accumulator of {}", spelling(acc.elem())),
            "the MXU accumulates in 32 bits: use f32", w);
    return acc;
  }
  const char* numbers = nt ? "#tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>"
                           : "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>";
  return Vec(&k, k.emit1(OpCode::kTpuMatmul, {a.value(), b.value(), acc.value()}, acc.value()->type,
                         {{"dimension_numbers", Attr::opaque(numbers)},
                          {"transpose_lhs", Attr::boolean(false)},
                          {"transpose_lhs_hint", Attr::boolean(false)},
                          {"transpose_rhs", Attr::boolean(false)}},
                         w));
}

}  // namespace

Vec dot(Vec a, Vec b, Vec acc, Where w) { return matmul(a, b, acc, false, w); }
Vec dot_nt(Vec a, Vec b, Vec acc, Where w) { return matmul(a, b, acc, true, w); }

}  // namespace gridless::lang
