// Integer arithmetic on scalars and vectors.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gridless/emulate/elementwise.h"

namespace gridless::emulate {
namespace {

Elem elem_of(const ir::Op& op) { return op.operands[0]->type.elem(); }

// f on the operands read as unsigned numbers of the operands' width.
template <typename F>
RtValue map_unsigned(const ir::Op& op, Args args, const F& f) {
  const Elem e = elem_of(op);
  return map_int(op, args, [&](int64_t a, int64_t b) {
    return static_cast<int64_t>(f(as_unsigned(e, a), as_unsigned(e, b)));
  });
}

void check_divisor(const ir::Op& op, int64_t b) {
  if (b == 0) [[unlikely]]
    fault(op, "invalid_ir", std::string(op.info().name) + ": division by zero",
          "the chip's result is undefined; keep the divisor away from zero with arith.select");
}

}  // namespace

RtValue PureOps::ArithAddi(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  });
}
RtValue PureOps::ArithSubi(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  });
}
RtValue PureOps::ArithMuli(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  });
}
RtValue PureOps::ArithDivsi(const ir::Op& op) const {
  return map_int(op, args, [&](int64_t a, int64_t b) {
    check_divisor(op, b);
    // By -1 as a negation: INT64_MIN / -1 traps on the host.
    return b == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a / b;
  });
}
RtValue PureOps::ArithRemsi(const ir::Op& op) const {
  return map_int(op, args, [&](int64_t a, int64_t b) {
    check_divisor(op, b);
    return b == -1 ? 0 : a % b;
  });
}
RtValue PureOps::ArithDivui(const ir::Op& op) const {
  return map_unsigned(op, args, [&](uint64_t a, uint64_t b) {
    check_divisor(op, static_cast<int64_t>(b));
    return a / b;
  });
}
RtValue PureOps::ArithRemui(const ir::Op& op) const {
  return map_unsigned(op, args, [&](uint64_t a, uint64_t b) {
    check_divisor(op, static_cast<int64_t>(b));
    return a % b;
  });
}
RtValue PureOps::ArithAndi(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) { return a & b; });
}
RtValue PureOps::ArithOri(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) { return a | b; });
}
RtValue PureOps::ArithXori(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) { return a ^ b; });
}

// A shift amount is an unsigned number; the width or more shifts everything out.
RtValue PureOps::ArithShli(const ir::Op& op) const {
  const auto width = static_cast<uint64_t>(ir::bit_width(elem_of(op)));
  return map_unsigned(op, args, [=](uint64_t a, uint64_t b) { return b < width ? a << b : 0; });
}
RtValue PureOps::ArithShrui(const ir::Op& op) const {
  const auto width = static_cast<uint64_t>(ir::bit_width(elem_of(op)));
  return map_unsigned(op, args, [=](uint64_t a, uint64_t b) { return b < width ? a >> b : 0; });
}
RtValue PureOps::ArithShrsi(const ir::Op& op) const {
  const Elem e = elem_of(op);
  const auto width = static_cast<uint64_t>(ir::bit_width(e));
  return map_int(op, args, [=](int64_t a, int64_t b) {
    return a >> std::min<uint64_t>(as_unsigned(e, b), width - 1);
  });
}
RtValue PureOps::ArithMaxsi(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) { return std::max(a, b); });
}
RtValue PureOps::ArithMinsi(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a, int64_t b) { return std::min(a, b); });
}
RtValue PureOps::ArithMaxui(const ir::Op& op) const {
  return map_unsigned(op, args, [](uint64_t a, uint64_t b) { return std::max(a, b); });
}
RtValue PureOps::ArithMinui(const ir::Op& op) const {
  return map_unsigned(op, args, [](uint64_t a, uint64_t b) { return std::min(a, b); });
}

RtValue PureOps::ArithCmpi(const ir::Op& op) const {
  const int64_t predicate = op.int_attr("predicate");
  const Elem e = elem_of(op);
  return map_int(op, args, [predicate, e](int64_t a, int64_t b) -> int64_t {
    switch (predicate) {
      case 0:
        return a == b;
      case 1:
        return a != b;
      case 2:
        return a < b;
      case 3:
        return a <= b;
      case 4:
        return a > b;
      case 5:
        return a >= b;
      case 6:
        return as_unsigned(e, a) < as_unsigned(e, b);
      case 7:
        return as_unsigned(e, a) <= as_unsigned(e, b);
      case 8:
        return as_unsigned(e, a) > as_unsigned(e, b);
      default:
        return as_unsigned(e, a) >= as_unsigned(e, b);
    }
  });
}

RtValue PureOps::MathAbsi(const ir::Op& op) const {
  return map_int(op, args, [](int64_t a) {
    return a < 0 ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : a;
  });
}
RtValue PureOps::MathCtlz(const ir::Op& op) const {
  const Elem e = elem_of(op);
  const int64_t spare = 64 - ir::bit_width(e);
  return map_int(op, args, [=](int64_t a) { return std::countl_zero(as_unsigned(e, a)) - spare; });
}
RtValue PureOps::MathCtpop(const ir::Op& op) const {
  const Elem e = elem_of(op);
  return map_int(op, args,
                 [=](int64_t a) { return static_cast<int64_t>(std::popcount(as_unsigned(e, a))); });
}
// A hint about divisibility; the checker looks at it, the value passes through.
std::string broken_promise(const ir::Op& op, const Scalar& s) {
  const int64_t multiple = op.int_attr("multiple");
  if (multiple > 0 && s.i % multiple == 0) return {};
  return fmt::format("{} is promised to be a multiple of {}, and is not", s.i, multiple);
}

RtValue PureOps::TpuAssumeMultiple(const ir::Op& op) const {
  const auto* s = std::get_if<Scalar>(args[0]);
  if (const std::string problem = s ? broken_promise(op, *s) : ""; !problem.empty())
    fault(op, "misaligned", problem, kPromiseHint);
  return *args[0];
}

}  // namespace gridless::emulate
