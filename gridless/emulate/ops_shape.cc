// Ops that move elements without changing them.
#include <algorithm>

#include "gridless/emulate/codec.h"
#include "gridless/emulate/pure_ops.h"

namespace gridless::emulate {
namespace {

// out[k] = in[source(k)] for both canonical forms.
template <typename F>
RtValue gather(Type type, const Vector& in, const F& source) {
  Vector out(type);
  const auto n = static_cast<size_t>(out.size());
  if (out.is_float()) {
    const float* x = in.f().data();
    float* y = out.mutable_f().data();
    for (size_t k = 0; k < n; ++k) y[k] = x[source(k)];
  } else {
    const int32_t* x = in.i().data();
    int32_t* y = out.mutable_i().data();
    for (size_t k = 0; k < n; ++k) y[k] = x[source(k)];
  }
  return out;
}

// Walks the elements of `shape` in row-major order and keeps start + sum of index * stride.
class Walk {
 public:
  Walk(const Shape& shape, Shape stride, int64_t start = 0)
      : shape_(shape), stride_(std::move(stride)), at_(shape.size(), 0), place_(start) {}
  int64_t next() {
    const int64_t place = place_;
    for (size_t d = shape_.size(); d-- > 0;) {
      place_ += stride_[d];
      if (++at_[d] < shape_[d]) break;
      place_ -= stride_[d] * shape_[d];
      at_[d] = 0;
    }
    return place;
  }

 private:
  const Shape& shape_;
  Shape stride_;
  Shape at_;
  int64_t place_;
};

RtValue gather_strided(Type type, const Vector& in, Shape stride, int64_t start = 0) {
  Walk walk(type.shape(), std::move(stride), start);
  return gather(type, in, [&](size_t) { return walk.next(); });
}

// Sizes before and after dimension d.
struct Split {
  int64_t outer = 1, size = 1, inner = 1;
};
Split split(const Shape& shape, int64_t d) {
  Split s;
  for (size_t k = 0; k < shape.size(); ++k) {
    int64_t& part = static_cast<int64_t>(k) < d    ? s.outer
                    : static_cast<int64_t>(k) == d ? s.size
                                                   : s.inner;
    part *= shape[k];
  }
  return s;
}

std::vector<int64_t> ints_of(const ir::Op& op, std::string_view name) {
  const ir::Attr& a = *op.find(name);
  if (a.kind() != ir::AttrKind::kArray) return a->ints;
  std::vector<int64_t> out;
  for (const ir::Attr& e : a->array) out.push_back(e->ints.at(0));
  return out;
}

}  // namespace

RtValue PureOps::VectorBroadcast(const ir::Op& op) const {
  const Type type = op.result()->type;
  if (std::holds_alternative<Scalar>(*args[0])) return splat(type, scalar(*args[0]));
  const Vector& in = vector(*args[0]);
  if (in.shape() == type.shape()) return in;
  const Shape from = row_major(in.shape());
  Shape stride(type.shape().size(), 0);
  const size_t lead = stride.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) stride[lead + d] = in.shape()[d] == 1 ? 0 : from[d];
  return gather_strided(type, in, std::move(stride));
}

RtValue PureOps::VectorShapeCast(const ir::Op& op) const {
  return vector(*args[0]).reshaped(op.result()->type);
}

RtValue PureOps::VectorExtract(const ir::Op& op) const {
  const Vector& in = vector(*args[0]);
  const std::vector<int64_t> position = ints_of(op, "static_position");
  const Shape stride = row_major(in.shape());
  int64_t start = 0;
  for (size_t d = 0; d < position.size(); ++d) {
    if (position[d] < 0 || position[d] >= in.shape()[d])
      fault(op, "out_of_bounds", "vector.extract: position outside the vector");
    start += position[d] * stride[d];
  }
  const Type type = op.result()->type;
  if (type.is_vector())
    return gather(type, in, [&](size_t k) { return static_cast<size_t>(start) + k; });
  const auto k = static_cast<size_t>(start);
  if (in.is_float()) return Scalar{.elem = type.elem(), .f = in.f()[k]};
  return Scalar{.elem = type.elem(), .i = in.i()[k]};
}

RtValue PureOps::VectorExtractStridedSlice(const ir::Op& op) const {
  const Vector& in = vector(*args[0]);
  const auto offsets = ints_of(op, "offsets"), steps = ints_of(op, "strides");
  Shape stride = row_major(in.shape());
  int64_t start = 0;
  for (size_t d = 0; d < offsets.size(); ++d) {
    const int64_t last = offsets[d] + (op.result()->type.shape()[d] - 1) * steps[d];
    if (offsets[d] < 0 || last >= in.shape()[d])
      fault(op, "out_of_bounds", "vector.extract_strided_slice: the slice leaves the vector");
    start += offsets[d] * stride[d];
    stride[d] *= steps[d];
  }
  return gather_strided(op.result()->type, in, std::move(stride), start);
}

RtValue PureOps::TpuTranspose(const ir::Op& op) const {
  const Vector& in = vector(*args[0]);
  const Shape from = row_major(in.shape());
  Shape stride;
  for (int64_t p : ints_of(op, "permutation")) stride.push_back(from[static_cast<size_t>(p)]);
  return gather_strided(op.result()->type, in, std::move(stride));
}

RtValue PureOps::TpuIota(const ir::Op& op) const {
  Vector out(op.result()->type);
  const Shape& shape = out.shape();
  Shape stride(shape.size(), 0);
  // Several dimensions count together, row-major, the last one fastest.
  int64_t step = 1;
  const auto& dims = op.ints_attr("dimensions");
  for (size_t k = dims.size(); k-- > 0;) {
    const auto d = static_cast<size_t>(dims[k]);
    stride[d] = step;
    step *= shape[d];
  }
  Walk walk(shape, std::move(stride));
  if (out.is_float()) fault(op, "invalid_ir", "tpu.iota makes integers");
  for (int32_t& v : out.mutable_i()) v = static_cast<int32_t>(wrap(out.elem(), walk.next()));
  return out;
}

RtValue PureOps::TpuConcatenate(const ir::Op& op) const {
  Vector out(op.result()->type);
  const int64_t d = op.int_attr("dimension");
  const Split whole = split(out.shape(), d);
  int64_t before = 0;  // positions of dimension d that are filled
  for (const RtValue* arg : args) {
    const Vector& in = vector(*arg);
    const int64_t run = split(in.shape(), d).size * whole.inner;
    for (int64_t o = 0; o < whole.outer; ++o) {
      const int64_t to = (o * whole.size + before) * whole.inner;
      if (out.is_float()) {
        std::copy_n(in.f().data() + o * run, run, out.mutable_f().data() + to);
      } else {
        std::copy_n(in.i().data() + o * run, run, out.mutable_i().data() + to);
      }
    }
    before += run / whole.inner;
  }
  return out;
}

// As numpy.roll: result[i] = x[(i - shift) mod n]; with stride, the shift grows by it with every
// index of stride_dimension.
RtValue PureOps::TpuDynamicRotate(const ir::Op& op) const {
  const Vector& in = vector(*args[0]);
  const int64_t shift = scalar(*args[1]).i;
  const int64_t d = op.int_attr("dimension");
  const int64_t stride = op.int_attr_or("stride", 0);
  const int64_t along = op.int_attr_or("stride_dimension", 0);
  const Split s = split(in.shape(), d);
  const Split t = split(in.shape(), along);
  return gather(in.type(), in, [&](size_t k) {
    const auto i = static_cast<int64_t>(k);
    const int64_t at = i / s.inner % s.size;
    const int64_t row = stride == 0 ? 0 : i / t.inner % t.size;
    int64_t from = (at - shift - row * stride) % s.size;
    if (from < 0) from += s.size;
    return static_cast<size_t>(i + (from - at) * s.inner);
  });
}

// result[.., i, ..] = x[.., index[.., i, ..], ..] along one dimension. The index is taken modulo
// the size, as the chip's permute network does with the bits it looks at.
RtValue PureOps::TpuDynamicGather(const ir::Op& op) const {
  const Vector& in = vector(*args[0]);
  const Vector& index = vector(*args[1]);
  const auto dims = ints_of(op, "dimensions");
  if (dims.size() != 1 || in.shape().size() != index.shape().size())
    fault(op, "shape_mismatch", "tpu.dynamic_gather takes one dimension and operands of one rank");
  const Split s = split(in.shape(), dims[0]);
  const Split t = split(index.shape(), dims[0]);
  if (s.outer != t.outer || s.inner != t.inner)
    fault(op, "shape_mismatch", "tpu.dynamic_gather: shapes differ beyond the gathered dimension");
  const auto at = index.i();
  return gather(op.result()->type, in, [&](size_t k) {
    const auto i = static_cast<int64_t>(k);
    int64_t from = at[k] % s.size;
    if (from < 0) from += s.size;
    const int64_t outer = i / (t.size * t.inner);
    return static_cast<size_t>((outer * s.size + from) * s.inner + i % t.inner);
  });
}

}  // namespace gridless::emulate
