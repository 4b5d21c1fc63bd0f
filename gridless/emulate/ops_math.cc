// Transcendental functions. Computed in double and rounded to f32 once, which is the f32 nearest to
// the true value except where that lies within 2^-28 of a tie: the most exact definition that is
// cheap to state, and the same on every machine up to the libm's last double bit.
#include <cmath>

#include "gridless/emulate/elementwise.h"

namespace gridless::emulate {
namespace {

template <typename F>
RtValue in_double(const ir::Op& op, Args args, const F& f) {
  return map_float(op, args,
                   [&](float x) { return static_cast<float>(f(static_cast<double>(x))); });
}

template <typename F>
RtValue in_double2(const ir::Op& op, Args args, const F& f) {
  return map_float(op, args, [&](float x, float y) {
    return static_cast<float>(f(static_cast<double>(x), static_cast<double>(y)));
  });
}

}  // namespace

RtValue PureOps::MathExp(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::exp(x); });
}
RtValue PureOps::MathExp2(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::exp2(x); });
}
RtValue PureOps::MathLog(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::log(x); });
}
RtValue PureOps::MathLog2(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::log2(x); });
}
RtValue PureOps::MathLog1p(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::log1p(x); });
}
RtValue PureOps::MathTanh(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::tanh(x); });
}
RtValue PureOps::MathTan(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::tan(x); });
}
RtValue PureOps::MathSin(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::sin(x); });
}
RtValue PureOps::MathCos(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::cos(x); });
}
RtValue PureOps::MathErf(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return std::erf(x); });
}
RtValue PureOps::MathRsqrt(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return 1.0 / std::sqrt(x); });
}
RtValue PureOps::MathSqrt(const ir::Op& op) const {
  return map_float(op, args, [](float x) { return std::sqrt(x); });
}
RtValue PureOps::MathPowf(const ir::Op& op) const {
  return in_double2(op, args, [](double x, double y) { return std::pow(x, y); });
}
RtValue PureOps::MathAtan2(const ir::Op& op) const {
  return in_double2(op, args, [](double x, double y) { return std::atan2(x, y); });
}
RtValue PureOps::TpuLogistic(const ir::Op& op) const {
  return in_double(op, args, [](double x) { return 1.0 / (1.0 + std::exp(-x)); });
}
// approx and full_range ask for speed or range on the chip; here it is always the rounded quotient.
RtValue PureOps::TpuReciprocal(const ir::Op& op) const {
  return map_float(op, args, [](float x) { return 1.0f / x; });
}
RtValue PureOps::MathAbsf(const ir::Op& op) const {
  return map_float(op, args, [](float x) { return std::fabs(x); });
}
RtValue PureOps::MathFloor(const ir::Op& op) const {
  return map_float(op, args, [](float x) { return std::floor(x); });
}
RtValue PureOps::MathCeil(const ir::Op& op) const {
  return map_float(op, args, [](float x) { return std::ceil(x); });
}
RtValue PureOps::MathRound(const ir::Op& op) const {  // halves away from zero
  return map_float(op, args, [](float x) { return std::round(x); });
}
RtValue PureOps::MathRoundeven(const ir::Op& op) const {
  return map_float(op, args, [](float x) {
    // Not nearbyint: that reads the host's rounding mode.
    const float r = std::round(x);
    return std::fabs(x - std::trunc(x)) == 0.5f ? std::copysign(2.0f * std::round(x / 2.0f), x) : r;
  });
}

// "weird": infinite or NaN.
RtValue PureOps::TpuWeird(const ir::Op& op) const {
  const Type type = op.result()->type;
  if (!type.is_vector()) return make_int(Elem::kI1, !std::isfinite(scalar(*args[0]).f));
  Vector out(type);
  const auto y = out.mutable_i();
  const auto a = vector(*args[0]).f();
  for (size_t k = 0; k < y.size(); ++k) y[k] = !std::isfinite(a[k]);
  return out;
}

}  // namespace gridless::emulate
