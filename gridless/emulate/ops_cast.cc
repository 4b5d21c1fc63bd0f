// Conversions between formats, bitcasts, packing, constants.
#include <bit>
#include <cmath>

#include "gridless/emulate/elementwise.h"

namespace gridless::emulate {
namespace {

// float -> integer, toward zero, saturating to [low, high]; NaN gives 0.
template <typename F>
RtValue float_to_int(const ir::Op& op, Args args, const F& convert) {
  const Type type = op.result()->type;
  if (!type.is_vector()) return make_int(type.elem(), convert(scalar(*args[0]).f));
  Vector out(type);
  const auto y = out.mutable_i();
  const auto x = vector(*args[0]).f();
  for (size_t k = 0; k < y.size(); ++k)
    y[k] = static_cast<int32_t>(wrap(type.elem(), convert(x[k])));
  return out;
}

template <typename F>
RtValue int_to_float(const ir::Op& op, Args args, const F& convert) {
  const Type type = op.result()->type;
  if (!type.is_vector()) return make_float(type.elem(), convert(scalar(*args[0]).i));
  Vector out(type);
  const auto y = out.mutable_f();
  const auto x = vector(*args[0]).i();
  for (size_t k = 0; k < y.size(); ++k) y[k] = convert(x[k]);
  round_to(type.elem(), y);
  return out;
}

// The bits of one element of a canonical vector.
uint32_t bits_at(const Vector& v, size_t k) {
  return v.is_float() ? float_bits(v.elem(), v.f()[k])
                      : static_cast<uint32_t>(as_unsigned(v.elem(), v.i()[k]));
}

void set_bits_at(Vector& v, size_t k, uint32_t bits) {
  if (v.is_float()) {
    v.mutable_f()[k] = float_from_bits(v.elem(), bits);
  } else {
    v.mutable_i()[k] = static_cast<int32_t>(wrap(v.elem(), bits));
  }
}

uint32_t low_mask(int bits) { return bits >= 32 ? ~0u : (1u << bits) - 1u; }

RtValue bitcast_scalar(Type type, const Scalar& s) {
  const Elem from = s.elem, to = type.elem();
  if (!ir::is_float(from) && !ir::is_float(to)) return make_int(to, s.i);
  const uint32_t bits =
      ir::is_float(from) ? float_bits(from, s.f) : static_cast<uint32_t>(as_unsigned(from, s.i));
  if (ir::is_float(to)) return Scalar{.elem = to, .f = float_from_bits(to, bits)};
  return make_int(to, bits);
}

}  // namespace

RtValue PureOps::ArithExtf(const ir::Op& op) const {
  return map_float(op, args, [](float x) { return x; });
}
RtValue PureOps::ArithTruncf(const ir::Op& op) const {
  return map_float(op, args, [](float x) { return x; });
}
RtValue PureOps::ArithSitofp(const ir::Op& op) const {
  return int_to_float(op, args, [](int64_t x) { return static_cast<float>(x); });
}
RtValue PureOps::ArithUitofp(const ir::Op& op) const {
  const Elem e = op.operands[0]->type.elem();
  return int_to_float(op, args, [=](int64_t x) { return static_cast<float>(as_unsigned(e, x)); });
}
RtValue PureOps::ArithFptosi(const ir::Op& op) const {
  const int bits = std::min(ir::bit_width(op.result()->type.elem()), 63);
  const double high = std::ldexp(1.0, bits - 1);
  return float_to_int(op, args, [=](float x) -> int64_t {
    if (x != x) return 0;
    const double t = std::trunc(static_cast<double>(x));
    return static_cast<int64_t>(t >= high ? high - 1 : t < -high ? -high : t);
  });
}
RtValue PureOps::ArithFptoui(const ir::Op& op) const {
  const int bits = std::min(ir::bit_width(op.result()->type.elem()), 52);
  const double high = std::ldexp(1.0, bits);
  return float_to_int(op, args, [=](float x) -> int64_t {
    if (x != x) return 0;
    const double t = std::trunc(static_cast<double>(x));
    return static_cast<int64_t>(t >= high ? high - 1 : t < 0 ? 0 : t);
  });
}
RtValue PureOps::ArithExtsi(const ir::Op& op) const {
  // An i1 is 0 or 1 in canonical form, and 0 or -1 when sign-extended.
  if (op.operands[0]->type.elem() == Elem::kI1)
    return map_int(op, args, [](int64_t x) { return -x; });
  return map_int(op, args, [](int64_t x) { return x; });
}
RtValue PureOps::ArithExtui(const ir::Op& op) const {
  const Elem e = op.operands[0]->type.elem();
  return map_int(op, args, [=](int64_t x) { return static_cast<int64_t>(as_unsigned(e, x)); });
}
RtValue PureOps::ArithTrunci(const ir::Op& op) const {
  return map_int(op, args, [](int64_t x) { return x; });
}
RtValue PureOps::ArithIndexCast(const ir::Op& op) const {
  return map_int(op, args, [](int64_t x) { return x; });
}

RtValue PureOps::ArithBitcast(const ir::Op& op) const {
  const Type type = op.result()->type;
  if (!type.is_vector()) return bitcast_scalar(type, scalar(*args[0]));
  const Vector& x = vector(*args[0]);
  Vector out(type);
  for (size_t k = 0; k < static_cast<size_t>(out.size()); ++k) set_bits_at(out, k, bits_at(x, k));
  return out;
}

// Between widths, rows that share a 32-bit word are regrouped: bf16[16,256] -> i32[8,256], where
// row i holds row 2i in its low half and row 2i+1 in its high half; and back.
RtValue PureOps::TpuBitcast(const ir::Op& op) const {
  const Type type = op.result()->type;
  if (!type.is_vector()) return bitcast_scalar(type, scalar(*args[0]));
  const Vector& x = vector(*args[0]);
  const int from = ir::bit_width(x.elem()), to = ir::bit_width(type.elem());
  if (from == to) return ArithBitcast(op);
  const Shape& shape = type.shape();
  if (shape.size() < 2)
    fault(op, "shape_mismatch", "tpu.bitcast to another width needs at least two dimensions");
  Vector out(type);
  const auto cols = static_cast<size_t>(shape.back());
  const size_t rows = static_cast<size_t>(out.size()) / cols;  // of all leading dimensions
  if (to > from) {
    const auto ratio = static_cast<size_t>(to / from);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        uint32_t word = 0;
        for (size_t s = 0; s < ratio; ++s)
          word |= bits_at(x, (r * ratio + s) * cols + c) << (s * static_cast<size_t>(from));
        set_bits_at(out, r * cols + c, word);
      }
    }
  } else {
    const auto ratio = static_cast<size_t>(from / to);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < cols; ++c) {
        const uint32_t word = bits_at(x, r / ratio * cols + c);
        set_bits_at(out, r * cols + c,
                    word >> (r % ratio * static_cast<size_t>(to)) & low_mask(to));
      }
    }
  }
  return out;
}

// Operand s goes to bits [s * width, (s + 1) * width) of each 32-bit word; floats round to the
// target.
RtValue PureOps::TpuPackElementwise(const ir::Op& op) const {
  const Elem target = (*op.find("target_type"))->type.elem();
  const int bits = ir::bit_width(target);
  if (static_cast<int>(args.size()) * bits > 32)
    fault(op, "shape_mismatch", "tpu.pack_elementwise: the operands do not fit in 32 bits");
  Vector out(op.result()->type);
  const auto y = out.mutable_i();
  for (size_t k = 0; k < y.size(); ++k) {
    uint32_t word = 0;
    for (size_t s = 0; s < args.size(); ++s) {
      const Vector& x = vector(*args[s]);
      const uint32_t part = x.is_float() ? float_bits(target, x.f()[k])
                                         : static_cast<uint32_t>(x.i()[k]) & low_mask(bits);
      word |= part << (static_cast<int>(s) * bits);
    }
    y[k] = static_cast<int32_t>(word);
  }
  return out;
}

RtValue PureOps::TpuUnpackElementwise(const ir::Op& op) const {
  const Elem source = (*op.find("source_type"))->type.elem();
  const int bits = ir::bit_width(source);
  const auto shift = static_cast<uint32_t>(op.int_attr("index")) * static_cast<uint32_t>(bits);
  if (shift >= 32) fault(op, "shape_mismatch", "tpu.unpack_elementwise: index beyond the word");
  const auto x = vector(*args[0]).i();
  Vector out(op.result()->type);
  for (size_t k = 0; k < x.size(); ++k) {
    const uint32_t part = static_cast<uint32_t>(x[k]) >> shift & low_mask(bits);
    if (out.is_float()) {
      out.mutable_f()[k] = float_from_bits(source, part);
    } else {
      out.mutable_i()[k] = static_cast<int32_t>(wrap(source, part));
    }
  }
  return out;
}

// Adds the low 16 random bits below the kept mantissa and cuts: rounds up with the probability of
// the cut fraction. Infinities and NaNs are kept.
RtValue PureOps::TpuStochasticConvert(const ir::Op& op) const {
  const Type type = op.result()->type;
  if (type.elem() != Elem::kBf16)
    fault(op, "invalid_ir", "tpu.stochastic_convert to a format other than bf16 is not supported");
  const auto x = vector(*args[0]).f();
  const auto random = vector(*args[1]).i();
  Vector out(type);
  const auto y = out.mutable_f();
  for (size_t k = 0; k < y.size(); ++k) {
    const auto u = std::bit_cast<uint32_t>(x[k]);
    const bool finite = std::isfinite(x[k]);
    const uint32_t sum = finite ? u + (static_cast<uint32_t>(random[k]) & 0xffffu) : u;
    y[k] = finite ? std::bit_cast<float>(sum & 0xffff0000u) : round_to(Elem::kBf16, x[k]);
  }
  return out;
}

RtValue PureOps::ArithConstant(const ir::Op& op) const {
  const Type type = op.result()->type;
  const ir::Attr& value = *op.find("value");
  const auto& ints = value->ints;
  const auto& reals = value->reals;
  if (!type.is_vector()) {
    if (ir::is_float(type.elem())) return make_float(type.elem(), static_cast<float>(reals.at(0)));
    return make_int(type.elem(), ints.at(0));
  }
  Vector out(type);
  if (out.is_float()) {
    const auto y = out.mutable_f();
    for (size_t k = 0; k < y.size(); ++k)
      y[k] = static_cast<float>(reals[reals.size() == 1 ? 0 : k]);
    round_to(type.elem(), y);
  } else {
    const auto y = out.mutable_i();
    for (size_t k = 0; k < y.size(); ++k)
      y[k] = static_cast<int32_t>(wrap(type.elem(), ints[ints.size() == 1 ? 0 : k]));
  }
  return out;
}

}  // namespace gridless::emulate
