// The values of the kernel language: Scalar, Vec, Ref. Each is a small handle to an IR value (copy
// freely); operations on them append ops to the kernel that is being built, at the place where the C++
// code stands. Every op records the C++ line that made it.
//
// Sequential semantics, staged: the C++ code runs once and records. A C++ `for` unrolls; Kernel::loop
// emits a loop. A Scalar that is known while building (an int, or arithmetic on ints) is folded and
// becomes a constant only where an op needs it.
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
  Scalar(Kernel* k, ir::Value* v) : kernel_(k), value_(v) {}

  bool is_constant() const { return value_ == nullptr; }
  int64_t constant() const { return constant_; }  // of a constant
  Kernel* kernel() const { return kernel_; }
  ir::Value* value() const { return value_; }
  Elem elem() const { return value_ ? value_->type.elem() : Elem::kI32; }

 private:
  Kernel* kernel_ = nullptr;
  ir::Value* value_ = nullptr;
  int64_t constant_ = 0;
};

// A vector value: an array that lives in vector registers, e.g. 16x5120xbf16.
class Vec {
 public:
  Vec() = default;
  Vec(Kernel* k, ir::Value* v) : kernel_(k), value_(v) {}
  Kernel* kernel() const { return kernel_; }
  ir::Value* value() const { return value_; }
  Elem elem() const { return value_->type.elem(); }
  const Shape& shape() const { return value_->type.shape(); }
  int64_t dim(int i) const;  // negative counts from the end

 private:
  Kernel* kernel_ = nullptr;
  ir::Value* value_ = nullptr;
};

// An operand of vector arithmetic: a Vec, a Scalar of the same element, or a number; remembers the line.
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
};

struct ScalarArg {
  Scalar scalar;
  Where where;
  ScalarArg(Scalar s, Where w = Where::current()) : scalar(s), where(w) {}  // NOLINT
  ScalarArg(int s, Where w = Where::current()) : scalar(s), where(w) {}     // NOLINT
  ScalarArg(int64_t s, Where w = Where::current()) : scalar(s), where(w) {}  // NOLINT
};

// Element-wise; shapes broadcast as in numpy (a dimension of 1 stretches); elements must agree.
Vec operator+(Vec a, VecArg b);
Vec operator-(Vec a, VecArg b);
Vec operator*(Vec a, VecArg b);
Vec operator/(Vec a, VecArg b);  // floats only
Vec operator&(Vec a, VecArg b);  // integers and i1
Vec operator|(Vec a, VecArg b);
Vec operator^(Vec a, VecArg b);
Vec operator<(Vec a, VecArg b);  // -> i1
Vec operator<=(Vec a, VecArg b);
Vec operator>(Vec a, VecArg b);
Vec operator>=(Vec a, VecArg b);
Vec operator==(Vec a, VecArg b);
Vec operator!=(Vec a, VecArg b);

// Scalar arithmetic, on i32; folded when both sides are known. / and % round toward zero.
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
Scalar operator&&(Scalar a, ScalarArg b);  // both are evaluated
Scalar operator||(Scalar a, ScalarArg b);

// A window onto memory: an operand, an allocation, or a part of one. Never copies by itself.
class Ref {
 public:
  Ref() = default;
  Ref(Kernel* k, ir::Value* v) : kernel_(k), value_(v) {}
  Kernel* kernel() const { return kernel_; }
  ir::Value* value() const { return value_; }
  Elem elem() const { return value_->type.elem(); }
  const Shape& shape() const { return value_->type.shape(); }
  Space space() const { return value_->type.space(); }
  int64_t dim(int i) const;

  // The part [starts, starts + sizes). Starts on the two minor dimensions must be multiples of the tile
  // (8 or more rows, 128 lanes) when the copy engine or the vector unit is to reach it.
  Ref slice(const std::vector<Scalar>& starts, const Shape& sizes, Where w = Where::current()) const;
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
  void store_masked(Vec v, Vec mask, Where w = Where::current()) const;

  // SMEM: one element.
  Scalar get(const std::vector<Scalar>& index, Where w = Where::current()) const;
  void set(const std::vector<Scalar>& index, Scalar value, Where w = Where::current()) const;

 private:
  Kernel* kernel_ = nullptr;
  ir::Value* value_ = nullptr;
};

}  // namespace gridless::lang
