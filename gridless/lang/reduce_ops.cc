#include <fmt/format.h>

#include <limits>

#include "gridless/lang/emit.h"
#include "gridless/lang/ops.h"

namespace gridless::lang {

using ir::Attr;
using ir::OpCode;
using ir::Type;
using ir::Value;

namespace {

Vec reduce(Vec a, int axis, const char* float_kind, const char* int_kind, double float_init,
           int64_t int_init, Where w) {
  Kernel& k = *a.kernel();
  if (axis < 0 || axis >= static_cast<int>(a.shape().size()) || a.shape().size() < 2) {
    k.error("shape_mismatch",
            fmt::format("reduction over axis {} of {}", axis, a.value()->type.str()),
            "vectors have two dimensions or more, and the axis is one of them", w);
    return a;
  }
  Shape rest = a.shape(), kept = a.shape();
  rest.erase(rest.begin() + axis);
  kept[static_cast<size_t>(axis)] = 1;
  const bool floats = ir::is_float(a.elem());
  const Type type = Type::vector(rest, a.elem());
  const Attr init =
      floats ? Attr::dense_real(type, {float_init}) : Attr::dense_int(type, {int_init});
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

Vec arg_reduce(Vec a, int axis, const char* kind, Where w) {
  Kernel& k = *a.kernel();
  if (a.elem() != Elem::kF32 || a.shape().size() < 2 || axis < 0 ||
      axis >= static_cast<int>(a.shape().size())) {
    k.error("shape_mismatch",
            fmt::format("{} over axis {} of {}", kind, axis, a.value()->type.str()),
            "needs an f32 vector of two dimensions or more: cast() first", w);
    return a;
  }
  Shape rest = a.shape(), kept = a.shape();
  rest.erase(rest.begin() + axis);
  kept[static_cast<size_t>(axis)] = 1;
  const Vec flat(&k, k.emit1(OpCode::kTpuReduceIndex, {a.value()}, Type::vector(rest, Elem::kI32),
                             {{"axis", Attr::i32(axis)},
                              {"kind", Attr::opaque(fmt::format("#tpu.reduction_kind<{}>", kind))}},
                             w));
  return reshape(flat, kept, w);
}

}  // namespace

Vec arg_max(Vec a, int axis, Where w) { return arg_reduce(a, axis, "arg_max", w); }
Vec arg_min(Vec a, int axis, Where w) { return arg_reduce(a, axis, "arg_min", w); }

}  // namespace gridless::lang
