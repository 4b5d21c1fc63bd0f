// Loops over the elements of scalars and vectors, in the canonical forms of value.h.
#pragma once

#include <cmath>
#include <type_traits>

#include "gridless/emulate/codec.h"
#include "gridless/emulate/pure_ops.h"

namespace gridless::emulate {

// NaN if either is NaN, and -0 < +0: maximum and minimum of IEEE 754-2019.
inline float maximum(float a, float b) {
  if (a != a || b != b) return a + b;
  return a == b ? (std::signbit(a) ? b : a) : (a > b ? a : b);
}
inline float minimum(float a, float b) {
  if (a != a || b != b) return a + b;
  return a == b ? (std::signbit(a) ? a : b) : (a < b ? a : b);
}

// f(float...) -> float, rounded once to the result format.
template <typename F>
RtValue map_float(const ir::Op& op, Args args, const F& f) {
  const Type type = op.result()->type;
  if (!type.is_vector()) {
    if constexpr (std::is_invocable_v<F, float>) {
      return make_float(type.elem(), f(scalar(*args[0]).f));
    } else {
      return make_float(type.elem(), f(scalar(*args[0]).f, scalar(*args[1]).f));
    }
  }
  Vector out(type);
  const auto y = out.mutable_f();
  const auto a = vector(*args[0]).f();
  if constexpr (std::is_invocable_v<F, float>) {
    for (size_t k = 0; k < y.size(); ++k) y[k] = f(a[k]);
  } else {
    const auto b = vector(*args[1]).f();
    for (size_t k = 0; k < y.size(); ++k) y[k] = f(a[k], b[k]);
  }
  round_to(type.elem(), y);
  return out;
}

// f(int64...) -> int64 on canonical integers, wrapped to the result format.
template <typename F>
RtValue map_int(const ir::Op& op, Args args, const F& f) {
  const Type type = op.result()->type;
  const Elem e = type.elem();
  if (!type.is_vector()) {
    if constexpr (std::is_invocable_v<F, int64_t>) {
      return make_int(e, f(scalar(*args[0]).i));
    } else {
      return make_int(e, f(scalar(*args[0]).i, scalar(*args[1]).i));
    }
  }
  Vector out(type);
  const auto y = out.mutable_i();
  const int32_t* a = vector(*args[0]).i().data();
  const int32_t* b = args.size() > 1 ? vector(*args[1]).i().data() : nullptr;
  const auto at = [&](size_t k) -> int64_t {
    if constexpr (std::is_invocable_v<F, int64_t>) {
      return f(int64_t{a[k]});
    } else {
      return f(int64_t{a[k]}, int64_t{b[k]});
    }
  };
  if (e == Elem::kI32) {  // the usual case; a cast is its wrap
    for (size_t k = 0; k < y.size(); ++k) y[k] = static_cast<int32_t>(at(k));
  } else {
    for (size_t k = 0; k < y.size(); ++k) y[k] = static_cast<int32_t>(wrap(e, at(k)));
  }
  return out;
}

}  // namespace gridless::emulate
