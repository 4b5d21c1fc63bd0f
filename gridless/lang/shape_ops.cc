#include <fmt/format.h>

#include "gridless/lang/emit.h"
#include "gridless/lang/ops.h"

namespace gridless::lang {

using ir::Attr;
using ir::OpCode;
using ir::Type;
using ir::Value;

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
  return Vec(&k,
             k.emit1(OpCode::kVectorBroadcast, {a.value()}, Type::vector(shape, a.elem()), {}, w));
}

Vec broadcast(Scalar a, Shape shape, Where w) {
  Kernel& k = *a.kernel();
  return Vec(&k,
             k.emit1(OpCode::kVectorBroadcast, {a.value()}, Type::vector(shape, a.elem()), {}, w));
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
  if (sizes == a.shape() && starts == Shape(sizes.size(), 0)) return a;
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
  return Vec(&k,
             k.emit1(OpCode::kVectorExtractStridedSlice, {a.value()}, Type::vector(sizes, a.elem()),
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
  return Vec(&k,
             k.emit1(OpCode::kTpuConcatenate, std::move(operands),
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
  return Vec(&k,
             k.emit1(OpCode::kTpuDynamicRotate, {a.value(), k.as_i32(shift, w)}, a.value()->type,
                     {{"dimension", Attr::integer(axis, Type::scalar(Elem::kSi32))}}, w));
}

Vec gather(Vec a, Vec indices, int axis, Where w) {
  Kernel& k = *a.kernel();
  if (indices.elem() != Elem::kI32 || indices.shape() != a.shape() || axis < 0 ||
      axis >= static_cast<int>(a.shape().size())) {
    k.error("shape_mismatch",
            fmt::format("gather along axis {} of {} by {}", axis, a.value()->type.str(),
                        indices.value()->type.str()),
            "the indices are i32 and of the shape of the vector", w);
    return a;
  }
  const int64_t reach = axis + 1 == static_cast<int>(a.shape().size()) ? 128 : 8;
  if (a.shape()[static_cast<size_t>(axis)] > reach) {
    k.error("shape_mismatch",
            fmt::format("gather along {} elements of axis {} of {}",
                        a.shape()[static_cast<size_t>(axis)], axis, a.value()->type.str()),
            "the chip gathers within 128 lanes or 8 rows: slice() and where() the parts", w);
    return a;
  }
  return Vec(&k, k.emit1(OpCode::kTpuDynamicGather, {a.value(), indices.value()}, a.value()->type,
                         {{"dimensions", Attr::dense_array(Elem::kI32, {axis})}}, w));
}

Vec pack_pairs(Vec low, Vec high, Elem e, Where w) {
  Kernel& k = *low.kernel();
  if (ir::bit_width(low.elem()) != 32 || low.value()->type != high.value()->type ||
      ir::bit_width(e) != 16) {
    k.error("shape_mismatch",
            fmt::format("pack_pairs of {} and {} to {}", low.value()->type.str(),
                        high.value()->type.str(), spelling(e)),
            "two 32-bit vectors of one type make one vector of 16-bit pairs", w);
    return low;
  }
  return Vec(&k, k.emit1(OpCode::kTpuPackElementwise, {low.value(), high.value()},
                         Type::vector(low.shape(), Elem::kI32),
                         {{"target_type", Attr::type(Type::scalar(e))}}, w));
}

Vec unpack_half(Vec pairs, int half, Elem e, Where w) {
  Kernel& k = *pairs.kernel();
  if (pairs.elem() != Elem::kI32 || half < 0 || half > 1 || ir::bit_width(e) != 16) {
    k.error("shape_mismatch",
            fmt::format("unpack_half {} of {} as {}", half, pairs.value()->type.str(), spelling(e)),
            "an i32 vector holds two halves, 0 (low) and 1 (high), of 16 bits", w);
    return pairs;
  }
  const Elem wide = ir::is_float(e) ? Elem::kF32 : Elem::kI32;
  return Vec(
      &k, k.emit1(OpCode::kTpuUnpackElementwise, {pairs.value()}, Type::vector(pairs.shape(), wide),
                  {{"index", Attr::i32(half)}, {"source_type", Attr::type(Type::scalar(e))}}, w));
}

}  // namespace gridless::lang
