#include "gridless/emulate/value.h"

#include <algorithm>

#include "gridless/emulate/codec.h"

namespace gridless::emulate {

Vector::Vector(Type type) : type_(type), size_(type.num_elements()) {
  GRIDLESS_CHECK(type.is_vector() && size_ >= 0, "{}", type.str());
  const auto n = static_cast<size_t>(size_);
  if (ir::is_float(type.elem())) {
    f_ = std::make_shared_for_overwrite<float[]>(n);
  } else {
    i_ = std::make_shared_for_overwrite<int32_t[]>(n);
  }
}

Vector Vector::reshaped(Type type) const {
  GRIDLESS_CHECK(type.num_elements() == size_ && type.elem() == elem(), "{} as {}", type_.str(),
                 type.str());
  Vector v = *this;
  v.type_ = type;
  return v;
}

Scalar make_int(Elem e, int64_t i) { return Scalar{.elem = e, .i = wrap(e, i)}; }
Scalar make_float(Elem e, float f) { return Scalar{.elem = e, .f = round_to(e, f)}; }

Vector splat(Type type, const Scalar& s) {
  Vector v(type);
  if (v.is_float()) {
    std::ranges::fill(v.mutable_f(), s.f);
  } else {
    std::ranges::fill(v.mutable_i(), static_cast<int32_t>(s.i));
  }
  return v;
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= shape[d];
  }
  return strides;
}

}  // namespace gridless::emulate
