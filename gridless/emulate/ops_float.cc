// Float arithmetic, comparison and select.
#include <cmath>

#include "gridless/emulate/elementwise.h"

namespace gridless::emulate {

RtValue PureOps::ArithAddf(const ir::Op& op) const {
  return map_float(op, args, [](float a, float b) { return a + b; });
}
RtValue PureOps::ArithSubf(const ir::Op& op) const {
  return map_float(op, args, [](float a, float b) { return a - b; });
}
RtValue PureOps::ArithMulf(const ir::Op& op) const {
  return map_float(op, args, [](float a, float b) { return a * b; });
}
RtValue PureOps::ArithDivf(const ir::Op& op) const {
  return map_float(op, args, [](float a, float b) { return a / b; });
}
RtValue PureOps::ArithRemf(const ir::Op& op) const {
  return map_float(op, args, [](float a, float b) { return std::fmod(a, b); });
}
RtValue PureOps::ArithNegf(const ir::Op& op) const {
  return map_float(op, args, [](float a) { return -a; });
}

RtValue PureOps::ArithMaximumf(const ir::Op& op) const { return map_float(op, args, maximum); }
RtValue PureOps::ArithMinimumf(const ir::Op& op) const { return map_float(op, args, minimum); }

RtValue PureOps::ArithCmpf(const ir::Op& op) const {
  const int64_t predicate = op.int_attr("predicate");
  // MLIR's numbers: 1..6 ordered eq gt ge lt le ne, 7 ord, 8..13 the unordered six, 14 uno.
  const auto compare = [predicate](float a, float b) -> int32_t {
    const bool unordered = a != a || b != b;
    switch (predicate) {
      case 0:
        return 0;
      case 7:
        return !unordered;
      case 14:
        return unordered;
      case 15:
        return 1;
      default:
        break;
    }
    if (unordered) return predicate > 7;
    switch (predicate > 7 ? predicate - 7 : predicate) {
      case 1:
        return a == b;
      case 2:
        return a > b;
      case 3:
        return a >= b;
      case 4:
        return a < b;
      case 5:
        return a <= b;
      default:
        return a != b;
    }
  };
  const Type type = op.result()->type;
  if (!type.is_vector())
    return make_int(Elem::kI1, compare(scalar(*args[0]).f, scalar(*args[1]).f));
  Vector out(type);
  const auto y = out.mutable_i();
  const auto a = vector(*args[0]).f(), b = vector(*args[1]).f();
  for (size_t k = 0; k < y.size(); ++k) y[k] = compare(a[k], b[k]);
  return out;
}

RtValue PureOps::ArithSelect(const ir::Op&) const {
  if (std::holds_alternative<Scalar>(*args[0])) return scalar(*args[0]).i ? *args[1] : *args[2];
  const Vector& a = vector(*args[1]);
  Vector out(a.type());
  const auto choose = vector(*args[0]).i();
  if (out.is_float()) {
    const auto x = a.f(), z = vector(*args[2]).f();
    const auto y = out.mutable_f();
    for (size_t k = 0; k < y.size(); ++k) y[k] = choose[k] ? x[k] : z[k];
  } else {
    const auto x = a.i(), z = vector(*args[2]).i();
    const auto y = out.mutable_i();
    for (size_t k = 0; k < y.size(); ++k) y[k] = choose[k] ? x[k] : z[k];
  }
  return out;
}

}  // namespace gridless::emulate
