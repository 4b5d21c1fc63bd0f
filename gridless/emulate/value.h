// Run-time values: what an SSA value of the IR holds while a core runs.
//
// A Vector keeps its elements in one of two canonical forms, whatever its element format:
//   float formats    float, always a value that the format can represent
//   integer formats  int32, sign-extended from the width of the format (i1: 0 or 1), whatever the
//                    signedness of the type; ops that read them unsigned mask first
// so element-wise loops are written twice, not twenty times. Formats of 64 bits exist as scalars
// only: the chip has no such vectors. Vectors are immutable once made and shared, so passing one
// around a loop or through a shape_cast copies a pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "gridless/base/check.h"
#include "gridless/ir/type.h"

namespace gridless::emulate {

using ir::Elem;
using ir::Shape;
using ir::Type;

// Where a value comes from, for the checker: control flow that depends on vectors, or on operands
// nobody gave, is not the same for all data. The later one wins when values are combined.
enum class Origin : uint8_t { kKnown, kVector, kNotGiven };

struct Scalar {
  Elem elem = Elem::kI32;
  Origin origin = Origin::kKnown;
  int64_t i = 0;  // integer and index formats, sign-extended; i1: 0 or 1
  float f = 0;    // float formats
};

class Vector {
 public:
  Vector() = default;
  // Elements uninitialised; `type` is a vector type.
  explicit Vector(Type type);

  Type type() const { return type_; }
  Elem elem() const { return type_.elem(); }
  const Shape& shape() const { return type_.shape(); }
  int64_t size() const { return size_; }
  bool is_float() const { return f_ != nullptr; }

  std::span<const float> f() const { return {f_.get(), static_cast<size_t>(size_)}; }
  std::span<const int32_t> i() const { return {i_.get(), static_cast<size_t>(size_)}; }
  // For the op that makes the vector, before anybody else sees it.
  std::span<float> mutable_f() { return {f_.get(), static_cast<size_t>(size_)}; }
  std::span<int32_t> mutable_i() { return {i_.get(), static_cast<size_t>(size_)}; }

  // kNotGiven: some element depends on an operand that nobody gave. Else kKnown.
  Origin origin() const { return origin_; }
  void set_origin(Origin origin) { origin_ = origin; }

  // The same elements under another shape of as many elements; shares storage.
  Vector reshaped(Type type) const;

 private:
  Type type_;
  Origin origin_ = Origin::kKnown;
  int64_t size_ = 0;
  std::shared_ptr<float[]> f_;
  std::shared_ptr<int32_t[]> i_;
};

struct View;  // view.h
using Ref = std::shared_ptr<const View>;

using RtValue = std::variant<std::monostate, Scalar, Vector, Ref>;

// The operands of one op, in order.
using Args = std::span<const RtValue* const>;

inline const Scalar& scalar(const RtValue& v) {
  GRIDLESS_CHECK(std::holds_alternative<Scalar>(v), "expected a scalar");
  return std::get<Scalar>(v);
}
inline const Vector& vector(const RtValue& v) {
  GRIDLESS_CHECK(std::holds_alternative<Vector>(v), "expected a vector");
  return std::get<Vector>(v);
}
inline const View& view(const RtValue& v) {
  GRIDLESS_CHECK(std::holds_alternative<Ref>(v), "expected a ref");
  return *std::get<Ref>(v);
}

// A scalar of format e from an integer (wrapped) or a float (rounded).
Scalar make_int(Elem e, int64_t i);
Scalar make_float(Elem e, float f);
// A vector with every element equal to s.
Vector splat(Type type, const Scalar& s);

// Row-major strides of a shape, in elements.
Shape row_major(const Shape& shape);

}  // namespace gridless::emulate
