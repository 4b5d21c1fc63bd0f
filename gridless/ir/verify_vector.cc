// Shapes of vectors: moving, cutting, joining, reducing.
#include <algorithm>

#include "gridless/ir/verify_ops.h"

namespace gridless::ir {
namespace {

std::string_view opaque_value(std::string_view text) {
  const size_t from = text.find('<');
  if (from == std::string_view::npos || !text.ends_with('>')) return {};
  return text.substr(from + 1, text.size() - from - 2);
}

Shape without(const Shape& shape, const std::vector<int64_t>& dims) {
  Shape out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (std::ranges::find(dims, static_cast<int64_t>(i)) == dims.end()) out.push_back(shape[i]);
  }
  return out;
}

}  // namespace

void OpVerifier::TpuIota(const Op& op) {
  const auto dims = ints(op, "dimensions");
  if (!dims || !vector_operands(op)) return;
  const Type t = op.result()->type;
  expect(
      op, is_integer(t.elem()), "invalid_ir",
      [&] { return fmt::format("counts integers, not {}", t.str()); }, "convert with arith.sitofp");
  expect(
      op, t.rank() >= 2, "invalid_ir", [&] { return fmt::format("a 1-D iota {}", t.str()); },
      "make it 1xN and shape_cast");
  dimensions(op, *dims, t.rank());
}

void OpVerifier::TpuConcatenate(const Op& op) {
  if (!vector_operands(op)) return;
  const Type r = op.result()->type;
  const auto d = dimension(op, "dimension", r.rank());
  if (!d) return;
  const auto at = static_cast<size_t>(*d);
  int64_t sum = 0;
  for (const Value* v : op.operands) {
    Shape same = v->type.shape();
    if (same.size() == r.shape().size()) {
      sum = std::min(sum + same[at], int64_t{1} << 60);
      same[at] = r.shape()[at];
    }
    if (!expect(
            op, v->type.elem() == r.elem() && same == r.shape(), "shape_mismatch",
            [&] {
              return fmt::format("{} joined along dimension {} to {}", v->type.str(), *d, r.str());
            },
            "all other dimensions and the element type must be equal"))
      return;
  }
  expect(op, sum == r.shape()[at], "shape_mismatch", [&] {
    return fmt::format("the parts have {} along dimension {}, the result {}", sum, *d, r.str());
  });
}

void OpVerifier::TpuDynamicRotate(const Op& op) {
  const Type t = op.operands[0]->type;
  if (!expect(
          op, t.is_vector() && t == op.result()->type, "shape_mismatch",
          [&] { return fmt::format("rotates {} to {}", t.str(), op.result()->type.str()); },
          "a rotation keeps the type"))
    return;
  i32_operand(op, op.operands[1], "the amount");
  dimension(op, "dimension", t.rank());
  const bool stride = op.find("stride") != nullptr, along = op.find("stride_dimension") != nullptr;
  if (expect(op, stride == along, "invalid_ir", "stride and stride_dimension belong together") &&
      stride) {
    integer(op, "stride");
    dimension(op, "stride_dimension", t.rank());
  }
}

void OpVerifier::TpuBitcast(const Op& op) {
  if (vector_operands(op)) width_scaling(op, op.operands[0]->type, op.result()->type);
}

void OpVerifier::TpuTranspose(const Op& op) {
  const auto p = ints(op, "permutation");
  if (!p || !vector_operands(op)) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  if (!dimensions(op, *p, from.rank())) return;
  bool ok = static_cast<int64_t>(p->size()) == from.rank() && from.rank() == to.rank() &&
            from.elem() == to.elem();
  for (size_t i = 0; ok && i < p->size(); ++i)
    ok = to.shape()[i] == from.shape()[static_cast<size_t>((*p)[i])];
  expect(op, ok, "shape_mismatch", [&] {
    return fmt::format("{} permuted by [{}] is not {}", from.str(), fmt::join(*p, ", "), to.str());
  });
}

void OpVerifier::TpuReduceIndex(const Op& op) {
  if (!vector_operands(op)) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  const auto axis = dimension(op, "axis", from.rank());
  if (!axis) return;
  const std::string_view kind = opaque_value(op.text_attr("kind"));
  expect(
      op, kind == "arg_max" || kind == "arg_min", "invalid_ir",
      [&] { return fmt::format("kind '{}'", kind); }, "arg_max or arg_min");
  expect(
      op, is_float(from.elem()), "invalid_ir",
      [&] { return fmt::format("finds the largest of floats, not of {}", from.str()); },
      "convert to f32 first");
  expect(op, to.elem() == Elem::kI32 && to.shape() == without(from.shape(), {*axis}),
         "shape_mismatch", [&] {
           return fmt::format("{} reduced along {} gives i32 without that dimension, not {}",
                              from.str(), *axis, to.str());
         });
}

void OpVerifier::TpuDynamicGather(const Op& op) {
  const auto dims = ints(op, "dimensions");
  if (!dims || !vector_operands(op)) return;
  const Type from = op.operands[0]->type, where = op.operands[1]->type, to = op.result()->type;
  expect(op, where.elem() == Elem::kI32, "invalid_ir",
         [&] { return fmt::format("indices must be i32, got {}", where.str()); });
  expect(op, from.elem() == to.elem() && from.rank() == to.rank(), "shape_mismatch",
         [&] { return fmt::format("gathers {} from {}", to.str(), from.str()); });
  if (!dimensions(op, *dims, from.rank())) return;
  // One index for each element of the result, along one dimension.
  expect(
      op, dims->size() == 1, "invalid_ir",
      [&] { return fmt::format("{} dimensions", dims->size()); },
      "gather along one dimension at a time");
  if (!same_shape(op, where, to) || from.rank() != to.rank()) return;
  expect(
      op, without(from.shape(), *dims) == without(to.shape(), *dims), "shape_mismatch",
      [&] {
        return fmt::format("gathers {} from {} along [{}]", to.str(), from.str(),
                           fmt::join(*dims, ", "));
      },
      "only the gathered dimension may differ");
}

void OpVerifier::TpuPackElementwise(const Op& op) {
  if (!vector_operands(op)) return;
  const Attr& a = *op.find("target_type");
  const Type r = op.result()->type;
  if (!expect(op, a.kind() == AttrKind::kType && a->type.is_scalar(), "invalid_ir",
              "target_type must be a type"))
    return;
  const auto n = static_cast<int64_t>(op.operands.size());
  expect(
      op, n * bit_width(a->type.elem()) == bit_width(r.elem()), "invalid_ir",
      [&] {
        return fmt::format("{} elements of {} do not fill one of {}", n, a->type.str(), r.str());
      },
      "give as many operands as there are parts in 32 bits");
  expect(op, is_integer(r.elem()), "invalid_ir",
         [&] { return fmt::format("packs into integers, not {}", r.str()); });
  for (const Value* v : op.operands) {
    same_shape(op, v->type, r);
    expect(
        op, is_float(v->type.elem()) == is_float(a->type.elem()) && v->type == op.operands[0]->type,
        "invalid_ir", [&] { return fmt::format("packs {} as {}", v->type.str(), a->type.str()); });
  }
}

void OpVerifier::TpuUnpackElementwise(const Op& op) {
  if (!vector_operands(op)) return;
  const Attr& a = *op.find("source_type");
  const Type from = op.operands[0]->type, to = op.result()->type;
  const auto index = integer(op, "index");
  if (!expect(op, a.kind() == AttrKind::kType && a->type.is_scalar(), "invalid_ir",
              "source_type must be a type") ||
      !index)
    return;
  const int64_t parts = bit_width(from.elem()) / bit_width(a->type.elem());
  expect(op, *index >= 0 && *index < parts, "out_of_bounds",
         [&] { return fmt::format("part {} of {} parts of {}", *index, parts, a->type.str()); });
  expect(
      op, is_integer(from.elem()) && is_float(a->type.elem()) == is_float(to.elem()), "invalid_ir",
      [&] { return fmt::format("unpacks {} of {} as {}", a->type.str(), from.str(), to.str()); });
  same_shape(op, from, to);
}

void OpVerifier::TpuStochasticConvert(const Op& op) {
  if (!vector_operands(op)) return;
  const Type from = op.operands[0]->type, bits = op.operands[1]->type, to = op.result()->type;
  expect(op,
         from.elem() == Elem::kF32 && bits.elem() == Elem::kI32 && is_float(to.elem()) &&
             bit_width(to.elem()) < 32,
         "invalid_ir", [&] {
           return fmt::format("rounds f32 by i32 random bits to a smaller float, got {}, {} and {}",
                              from.str(), bits.str(), to.str());
         });
  same_shape(op, from, bits);
  same_shape(op, from, to);
}

void OpVerifier::TpuWeird(const Op& op) {
  const Type a = op.operands[0]->type, r = op.result()->type;
  if (expect(op, is_float(a.elem()) && r.elem() == Elem::kI1, "invalid_ir", [&] {
        return fmt::format("asks whether floats are NaN or infinite, got {} to {}", a.str(),
                           r.str());
      }))
    same_shape(op, a, r);
}

void OpVerifier::VectorBroadcast(const Op& op) {
  const Type from = op.operands[0]->type, to = op.result()->type;
  if (!expect(op, to.is_vector() && (from.is_vector() || from.is_scalar()), "invalid_ir",
              [&] { return fmt::format("cannot broadcast {} to {}", from.str(), to.str()); }))
    return;
  bool ok = from.elem() == to.elem() && from.rank() <= to.rank();
  for (int64_t i = 1; ok && i <= from.rank(); ++i) {
    const int64_t a = from.shape()[static_cast<size_t>(from.rank() - i)];
    ok = a == 1 || a == to.shape()[static_cast<size_t>(to.rank() - i)];
  }
  expect(
      op, ok, "shape_mismatch",
      [&] { return fmt::format("{} does not broadcast to {}", from.str(), to.str()); },
      "dimensions match from the last one; each is equal or 1");
}

void OpVerifier::VectorShapeCast(const Op& op) {
  if (!vector_operands(op)) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  expect(
      op, from.elem() == to.elem() && from.num_elements() == to.num_elements(), "shape_mismatch",
      [&] {
        return fmt::format("{} has {} elements, {} has {}", from.str(), from.num_elements(),
                           to.str(), to.num_elements());
      },
      "a shape_cast keeps the elements and their type");
}

void OpVerifier::VectorExtract(const Op& op) {
  const Type from = op.operands[0]->type, to = op.result()->type;
  const auto at = ints(op, "static_position");
  if (!at || !expect(op, from.is_vector(), "invalid_ir", [&] {
        return fmt::format("extracts from a vector, not from {}", from.str());
      }))
    return;
  if (!expect(op, at->size() <= from.shape().size(), "shape_mismatch",
              [&] { return fmt::format("position of {} numbers in {}", at->size(), from.str()); }))
    return;
  for (size_t i = 0; i < at->size(); ++i) {
    expect(op, (*at)[i] >= 0 && (*at)[i] < from.shape()[i], "out_of_bounds", [&] {
      return fmt::format("position {} of dimension {} of {}", (*at)[i], i, from.str());
    });
  }
  const Shape rest(from.shape().begin() + static_cast<std::ptrdiff_t>(at->size()),
                   from.shape().end());
  // MLIR has no vector of rank 0 here: the last element comes out as a scalar.
  const Type want = rest.empty() ? Type::scalar(from.elem()) : Type::vector(rest, from.elem());
  expect(op, to == want, "shape_mismatch",
         [&] { return fmt::format("gives {}, not {}", want.str(), to.str()); });
}

void OpVerifier::VectorExtractStridedSlice(const Op& op) {
  if (!vector_operands(op)) return;
  const Type from = op.operands[0]->type, to = op.result()->type;
  std::vector<int64_t> list[3];
  for (int k = 0; k < 3; ++k) {
    const char* name = k == 0 ? "offsets" : k == 1 ? "sizes" : "strides";
    const Attr& a = *op.find(name);
    bool ok = a.kind() == AttrKind::kArray;
    for (size_t i = 0; ok && i < a->array.size(); ++i) {
      ok = a->array[i].kind() == AttrKind::kInt;
      if (ok) list[k].push_back(a->array[i]->ints[0]);
    }
    if (!expect(op, ok, "invalid_ir",
                [&] { return fmt::format("'{}' must be a list of integers", name); }))
      return;
  }
  const auto& [offsets, sizes, strides] = list;
  const size_t n = offsets.size();
  if (!expect(op, n == sizes.size() && n == strides.size() && n <= from.shape().size(),
              "shape_mismatch", [&] {
                return fmt::format("{} offsets, {} sizes and {} strides for {}", n, sizes.size(),
                                   strides.size(), from.str());
              }))
    return;
  Shape want = from.shape();
  for (size_t i = 0; i < n; ++i) {
    expect(
        op, strides[i] == 1, "invalid_ir", [&] { return fmt::format("stride {}", strides[i]); },
        "only stride 1 exists; use tpu.strided_load");
    const int64_t have = from.shape()[i];
    expect(op,
           offsets[i] >= 0 && sizes[i] >= 1 && sizes[i] <= have && offsets[i] <= have - sizes[i],
           "out_of_bounds", [&] {
             return fmt::format("dimension {}: {} elements from {} of {}", i, sizes[i], offsets[i],
                                from.str());
           });
    want[i] = sizes[i];
  }
  expect(op, to.elem() == from.elem() && to.shape() == want, "shape_mismatch",
         [&] { return fmt::format("gives {}, not {}", shape_str(want), to.str()); });
}

void OpVerifier::VectorMultiReduction(const Op& op) {
  const Type from = op.operands[0]->type, acc = op.operands[1]->type, to = op.result()->type;
  const auto dims = ints(op, "reduction_dims");
  if (!dims ||
      !expect(op, from.is_vector(), "invalid_ir",
              [&] { return fmt::format("reduces a vector, not {}", from.str()); }) ||
      !dimensions(op, *dims, from.rank()))
    return;
  const std::string_view kind = opaque_value(op.text_attr("kind"));
  static constexpr std::string_view kBoth[] = {"add", "mul"};
  static constexpr std::string_view kFloats[] = {"minimumf", "maximumf", "minnumf", "maxnumf"};
  static constexpr std::string_view kInts[] = {"minsi", "maxsi", "minui", "maxui",
                                               "and",   "or",    "xor"};
  const auto in = [&](const auto& list) { return std::ranges::find(list, kind) != std::end(list); };
  expect(
      op, in(kBoth) || (is_float(from.elem()) ? in(kFloats) : in(kInts)), "invalid_ir",
      [&] { return fmt::format("cannot reduce {} by '{}'", from.str(), kind); },
      "add, mul; floats: maximumf, minimumf; integers: maxsi, minsi, maxui, minui, and, or, xor");
  const Shape rest = without(from.shape(), *dims);
  const Type want = rest.empty() ? Type::scalar(from.elem()) : Type::vector(rest, from.elem());
  expect(op, acc == want && to == want, "shape_mismatch", [&] {
    return fmt::format("{} reduced along [{}] gives {}; the start is {} and the result {}",
                       from.str(), fmt::join(*dims, ", "), want.str(), acc.str(), to.str());
  });
}

}  // namespace gridless::ir
