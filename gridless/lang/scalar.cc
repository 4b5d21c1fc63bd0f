#include <fmt/format.h>

#include <functional>

#include "gridless/base/check.h"
#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::Attr;
using ir::OpCode;
using ir::Type;
using ir::Value;

namespace {

Kernel* kernel_of(const Scalar& a, const Scalar& b) { return a.kernel() ? a.kernel() : b.kernel(); }

// A known float makes the whole operation a float one, as in C++; so does a run-time float. A
// run-time integer on the other side is then a mistake: the scalar unit does not convert by itself.
bool on_floats(const Scalar& a, const Scalar& b) {
  return ir::is_float(a.elem()) || ir::is_float(b.elem());
}

std::pair<Value*, Value*> operands(Kernel& k, const Scalar& a, const Scalar& b, Where w) {
  if (!on_floats(a, b)) return {k.as_elem(a, Elem::kI32, w), k.as_elem(b, Elem::kI32, w)};
  for (const Scalar* s : {&a, &b}) {
    if (!s->is_constant() && s->elem() != Elem::kF32) {
      k.error("shape_mismatch",
              fmt::format("a scalar of {} in arithmetic on f32", spelling(s->elem())),
              "cast() one of them", w);
      return {k.as_elem(Scalar(0.0), Elem::kF32, w), k.as_elem(Scalar(0.0), Elem::kF32, w)};
    }
  }
  return {k.as_elem(a, Elem::kF32, w), k.as_elem(b, Elem::kF32, w)};
}

struct Arithmetic {
  OpCode on_int;
  std::optional<OpCode> on_float;
  bool wraps;  // has overflow flags
  int64_t (*fold)(int64_t, int64_t);
  double (*fold_real)(double, double);
};

Scalar arithmetic(const Arithmetic& op, const Scalar& a, const ScalarArg& arg) {
  const Scalar& b = arg.scalar;
  const bool floats = on_floats(a, b);
  if (a.is_constant() && b.is_constant()) {
    if (floats) return Scalar(op.fold_real(a.real(), b.real()));
    return Scalar(op.fold(a.constant(), b.constant()));
  }
  Kernel& k = *kernel_of(a, b);
  if (floats && !op.on_float) {
    k.error("shape_mismatch", "a remainder of f32 values", "cast() to i32 first", arg.where);
    return Scalar(0);
  }
  const bool divides = op.on_int == OpCode::kArithDivsi || op.on_int == OpCode::kArithRemsi;
  if (!floats && divides && b.is_constant() && b.constant() == 0) {
    k.error("invalid_ir", "an integer division by zero", "the result is undefined on the chip",
            arg.where);
    return a;
  }
  const auto [x, y] = operands(k, a, b, arg.where);
  std::vector<ir::NamedAttr> attrs;
  if (floats) attrs.push_back(fastmath());
  if (!floats && op.wraps) attrs.push_back(overflow_flags());
  return Scalar(
      &k, k.emit1(floats ? *op.on_float : op.on_int, {x, y},
                  Type::scalar(floats ? Elem::kF32 : Elem::kI32), std::move(attrs), arg.where));
}

int64_t divide(int64_t x, int64_t y) {
  GRIDLESS_CHECK(y != 0, "an integer division by zero while building a kernel");
  return x / y;
}
int64_t remainder(int64_t x, int64_t y) {
  GRIDLESS_CHECK(y != 0, "a remainder by zero while building a kernel");
  return x % y;
}

constexpr Arithmetic kAdd = {OpCode::kArithAddi, OpCode::kArithAddf, true,
                             [](int64_t x, int64_t y) { return x + y; },
                             [](double x, double y) { return x + y; }};
constexpr Arithmetic kSub = {OpCode::kArithSubi, OpCode::kArithSubf, true,
                             [](int64_t x, int64_t y) { return x - y; },
                             [](double x, double y) { return x - y; }};
constexpr Arithmetic kMul = {OpCode::kArithMuli, OpCode::kArithMulf, true,
                             [](int64_t x, int64_t y) { return x * y; },
                             [](double x, double y) { return x * y; }};
constexpr Arithmetic kDiv = {OpCode::kArithDivsi, OpCode::kArithDivf, false, divide,
                             [](double x, double y) { return x / y; }};
constexpr Arithmetic kRem = {OpCode::kArithRemsi, std::nullopt, false, remainder,
                             [](double, double) { return 0.0; }};
constexpr Arithmetic kMax = {OpCode::kArithMaxsi, OpCode::kArithMaximumf, false,
                             [](int64_t x, int64_t y) { return x > y ? x : y; },
                             [](double x, double y) { return x > y ? x : y; }};
constexpr Arithmetic kMin = {OpCode::kArithMinsi, OpCode::kArithMinimumf, false,
                             [](int64_t x, int64_t y) { return x < y ? x : y; },
                             [](double x, double y) { return x < y ? x : y; }};

// In the order of MLIR's signed cmpi, with the ordered cmpf beside it (`ne` unordered).
enum Compare { kEq, kNe, kLt, kLe, kGt, kGe };
constexpr int kFloatPredicate[] = {1, 13, 4, 5, 2, 3};

template <typename T>
bool holds(Compare c, T x, T y) {
  const bool r[] = {x == y, x != y, x<y, x <= y, x> y, x >= y};
  return r[c];
}

Scalar compare(Compare c, const Scalar& a, const ScalarArg& arg) {
  const Scalar& b = arg.scalar;
  const bool floats = on_floats(a, b);
  if (a.is_constant() && b.is_constant()) {
    return Scalar(
        int{floats ? holds(c, a.real(), b.real()) : holds(c, a.constant(), b.constant())});
  }
  Kernel& k = *kernel_of(a, b);
  const auto [x, y] = operands(k, a, b, arg.where);
  std::vector<ir::NamedAttr> attrs;
  if (floats) attrs.push_back(fastmath());
  attrs.emplace_back("predicate", Attr::i64(floats ? kFloatPredicate[c] : static_cast<int>(c)));
  return Scalar(&k, k.emit1(floats ? OpCode::kArithCmpf : OpCode::kArithCmpi, {x, y},
                            Type::scalar(Elem::kI1), std::move(attrs), arg.where));
}

Scalar truth(const Scalar& s, Where w) {
  return s.is_constant() || s.elem() == Elem::kI1 ? s : s != ScalarArg(0, w);
}

Scalar logic(OpCode code, const Scalar& a, const ScalarArg& arg, bool is_and) {
  const Scalar x = truth(a, arg.where), y = truth(arg.scalar, arg.where);
  // With one side known the result is that side or the other one.
  if (x.is_constant()) return (x.constant() != 0) == is_and ? y : Scalar(int{!is_and});
  if (y.is_constant()) return (y.constant() != 0) == is_and ? x : Scalar(int{!is_and});
  Kernel& k = *x.kernel();
  return Scalar(&k, k.emit1(code, {x.value(), y.value()}, Type::scalar(Elem::kI1), {}, arg.where));
}

bool is(const Scalar& s, int64_t c) {
  return s.is_constant() && s.elem() == Elem::kI32 && s.constant() == c;
}

}  // namespace

// Identities are folded so that `base + 0` and `i * 1` cost nothing in generated code.
Scalar operator+(Scalar a, ScalarArg b) {
  if (is(b.scalar, 0)) return a;
  if (is(a, 0)) return b.scalar;
  return arithmetic(kAdd, a, b);
}
Scalar operator-(Scalar a, ScalarArg b) {
  if (is(b.scalar, 0)) return a;
  return arithmetic(kSub, a, b);
}
Scalar operator*(Scalar a, ScalarArg b) {
  if (is(b.scalar, 1)) return a;
  if (is(a, 1)) return b.scalar;
  if (!on_floats(a, b.scalar) && (is(a, 0) || is(b.scalar, 0))) return Scalar(0);
  return arithmetic(kMul, a, b);
}
Scalar operator/(Scalar a, ScalarArg b) {
  if (is(b.scalar, 1)) return a;
  return arithmetic(kDiv, a, b);
}
Scalar operator%(Scalar a, ScalarArg b) {
  if (is(b.scalar, 1)) return Scalar(0);
  return arithmetic(kRem, a, b);
}
Scalar max(Scalar a, ScalarArg b) { return arithmetic(kMax, a, b); }
Scalar min(Scalar a, ScalarArg b) { return arithmetic(kMin, a, b); }
Scalar operator<(Scalar a, ScalarArg b) { return compare(kLt, a, b); }
Scalar operator<=(Scalar a, ScalarArg b) { return compare(kLe, a, b); }
Scalar operator>(Scalar a, ScalarArg b) { return compare(kGt, a, b); }
Scalar operator>=(Scalar a, ScalarArg b) { return compare(kGe, a, b); }
Scalar operator==(Scalar a, ScalarArg b) { return compare(kEq, a, b); }
Scalar operator!=(Scalar a, ScalarArg b) { return compare(kNe, a, b); }
Scalar operator&&(Scalar a, ScalarArg b) { return logic(OpCode::kArithAndi, a, b, true); }
Scalar operator||(Scalar a, ScalarArg b) { return logic(OpCode::kArithOri, a, b, false); }

}  // namespace gridless::lang
