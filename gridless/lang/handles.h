// The values of the kernel language: Scalar, Vec, Ref. Each is a small handle to an IR value (copy
// freely); operations on them append ops to the kernel that is being built, at the place where the
// C++ code stands. Every op records the C++ line that made it.
//
// Sequential semantics, staged: the C++ code runs once and records. A C++ `for` unrolls;
// Kernel::loop emits a loop. A Scalar that is known while building (an int, or arithmetic on ints)
// is folded and becomes a constant only where an op needs it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::lang {

using ir::Elem;
using ir::Shape;
using ir::Space;
using Where = std::source_location;

class Kernel;
class Scalar;
class Vec;
class Ref;

// An i32 (default), index, i1 or f32 value on the scalar unit.
class Scalar {
 public:
  Scalar() = default;
  Scalar(int64_t c) : constant_(c) {}  // NOLINT: literals are scalars
  Scalar(int c) : constant_(c) {}      // NOLINT
  Scalar(double c) : constant_(static_cast<int64_t>(c)), real_(c), is_real_(true) {}  // NOLINT
  Scalar(Kernel* k, ir::Value* v) : kernel_(k), value_(v) {}

  bool is_constant() const { return value_ == nullptr; }
  int64_t constant() const { return constant_; }  // of a constant; a float is cut toward zero
  double real() const {
    return is_real_ ? real_ : static_cast<double>(constant_);
  }  // of a constant
  Kernel* kernel() const { return kernel_; }  // null for a constant
  ir::Value* value() const { return value_; }
  Elem elem() const { return value_ ? value_->type.elem() : is_real_ ? Elem::kF32 : Elem::kI32; }

 private:
  Kernel* kernel_ = nullptr;
  ir::Value* value_ = nullptr;
  int64_t constant_ = 0;
  double real_ = 0;
  bool is_real_ = false;
};

// A vector value: an array that lives in vector registers, e.g. 16x5120xbf16.
class Vec {
 public:
  Vec() = default;
  Vec(Kernel* k, ir::Value* v) : kernel_(k), value_(v) {}
  explicit operator bool() const { return value_ != nullptr; }
  Kernel* kernel() const;  // of an empty handle: aborts, as a null pointer would
  ir::Value* value() const { return value_; }
  Elem elem() const { return value_->type.elem(); }
  const Shape& shape() const { return value_->type.shape(); }
  int64_t dim(int i) const;  // negative counts from the end

 private:
  Kernel* kernel_ = nullptr;
  ir::Value* value_ = nullptr;
};

// An operand of vector arithmetic: a Vec, a Scalar of the same element, or a number; remembers the
// line.
struct VecArg {
  Vec vec;
  Scalar scalar;
  double number = 0;
  enum { kVec, kScalar, kNumber } kind;
  Where where;
  VecArg(Vec v, Where w = Where::current()) : vec(v), kind(kVec), where(w) {}           // NOLINT
  VecArg(Scalar s, Where w = Where::current()) : scalar(s), kind(kScalar), where(w) {}  // NOLINT
  VecArg(double d, Where w = Where::current()) : number(d), kind(kNumber), where(w) {}  // NOLINT
  VecArg(int d, Where w = Where::current()) : number(d), kind(kNumber), where(w) {}     // NOLINT
  VecArg(int64_t d, Where w = Where::current())                                         // NOLINT
      : number(static_cast<double>(d)), kind(kNumber), where(w) {}
};

struct ScalarArg {
  Scalar scalar;
  Where where;
  ScalarArg(Scalar s, Where w = Where::current()) : scalar(s), where(w) {}   // NOLINT
  ScalarArg(int s, Where w = Where::current()) : scalar(s), where(w) {}      // NOLINT
  ScalarArg(int64_t s, Where w = Where::current()) : scalar(s), where(w) {}  // NOLINT
  ScalarArg(double s, Where w = Where::current()) : scalar(s), where(w) {}   // NOLINT
};

// A number on the left of a vector, and the operand of a unary minus: an operator has no room for a
// defaulted location, a converting constructor has.
struct NumberArg {
  double number;
  Where where;
  NumberArg(double d, Where w = Where::current()) : number(d), where(w) {}  // NOLINT
};
struct NegatedVec {
  Vec vec;
  Where where;
  NegatedVec(Vec v, Where w = Where::current()) : vec(v), where(w) {}  // NOLINT
};

// Element-wise; shapes broadcast as in numpy (a dimension of 1 stretches); elements must agree.
Vec operator+(Vec a, VecArg b);
Vec operator-(Vec a, VecArg b);
Vec operator*(Vec a, VecArg b);
Vec operator/(Vec a, VecArg b);  // floats only
Vec operator+(NumberArg a, Vec b);
Vec operator-(NumberArg a, Vec b);
Vec operator*(NumberArg a, Vec b);
Vec operator/(NumberArg a, Vec b);
Vec operator-(NegatedVec a);
Vec operator&(Vec a, VecArg b);  // integers and i1
Vec operator|(Vec a, VecArg b);
Vec operator^(Vec a, VecArg b);
Vec operator<(Vec a, VecArg b);  // -> i1
Vec operator<=(Vec a, VecArg b);
Vec operator>(Vec a, VecArg b);
Vec operator>=(Vec a, VecArg b);
Vec operator==(Vec a, VecArg b);
Vec operator!=(Vec a, VecArg b);

// Scalar arithmetic, on i32 or (when either side is) f32; folded when both sides are known. On i32,
// / and % round toward zero; % is for integers only.
Scalar operator+(Scalar a, ScalarArg b);
Scalar operator-(Scalar a, ScalarArg b);
Scalar operator*(Scalar a, ScalarArg b);
Scalar operator/(Scalar a, ScalarArg b);
Scalar operator%(Scalar a, ScalarArg b);
Scalar operator<(Scalar a, ScalarArg b);  // -> i1
Scalar operator<=(Scalar a, ScalarArg b);
Scalar operator>(Scalar a, ScalarArg b);
Scalar operator>=(Scalar a, ScalarArg b);
Scalar operator==(Scalar a, ScalarArg b);
Scalar operator!=(Scalar a, ScalarArg b);
Scalar operator&&(Scalar a, ScalarArg b);  // both are evaluated; an i32 counts as "not zero"
Scalar operator||(Scalar a, ScalarArg b);

// A window onto memory: an operand, an allocation, or a part of one. Never copies by itself.
class Ref {
 public:
  Ref() = default;
  Ref(Kernel* k, ir::Value* v) : kernel_(k), value_(v) {}
  explicit operator bool() const { return value_ != nullptr; }
  Kernel* kernel() const;  // of an empty handle: aborts, as a null pointer would
  ir::Value* value() const { return value_; }
  Elem elem() const { return value_->type.elem(); }
  const Shape& shape() const { return value_->type.shape(); }
  Space space() const { return value_->type.space(); }
  int64_t dim(int i) const;

  // The part [starts, starts + sizes). On the minor dimension of HBM and VMEM, starts must be known
  // multiples of 128 lanes (a constant, i * 128, or Kernel::assume_multiple), and on the
  // second-minor one, for elements of less than 32 bits, multiples of 8 rows: the tiles of the copy
  // engine.
  Ref slice(const std::vector<Scalar>& starts, const Shape& sizes,
            Where w = Where::current()) const;
  // Element i of the first dimension, that dimension dropped.
  Ref at(Scalar i, Where w = Where::current()) const;
  // Rows [start, start + n) of the first dimension.
  Ref rows(Scalar start, int64_t n, Where w = Where::current()) const;
  Ref squeeze(Where w = Where::current()) const;  // drops the leading dimensions of 1
  Ref reshape(const Shape& shape, Where w = Where::current()) const;
  // The same bytes as elements of another width; the second-minor dimension scales.
  Ref bitcast(Elem e, Where w = Where::current()) const;

  // VMEM: whole vectors.
  Vec load(Where w = Where::current()) const;
  Vec load(const std::vector<Scalar>& starts, const Shape& sizes, Where w = Where::current()) const;
  void store(Vec v, Where w = Where::current()) const;
  void store(Vec v, const std::vector<Scalar>& starts, Where w = Where::current()) const;
  // Only where `mask` (i1, of the same shape) is set; 32-bit elements only.
  void store_masked(Vec v, Vec mask, Where w = Where::current()) const;
  void store_masked(Vec v, Vec mask, const std::vector<Scalar>& starts,
                    Where w = Where::current()) const;
  // Every strides[d]-th element of dimension d; `sizes` counts the elements taken. 32-bit
  // elements, allocations of exactly 128 lanes.
  Vec load_strided(const std::vector<Scalar>& starts, const Shape& sizes, const Shape& strides,
                   Where w = Where::current()) const;
  void store_strided(Vec v, const std::vector<Scalar>& starts, const Shape& strides,
                     Where w = Where::current()) const;

  // SMEM: one element, an i32 or an f32.
  Scalar get(const std::vector<Scalar>& index, Where w = Where::current()) const;
  void set(const std::vector<Scalar>& index, Scalar value, Where w = Where::current()) const;

 private:
  Kernel* kernel_ = nullptr;
  ir::Value* value_ = nullptr;
};

}  // namespace gridless::lang
