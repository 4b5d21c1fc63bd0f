#include "gridless/ir/dense_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gridless/ir/float_text.h"

namespace gridless::ir {
namespace {

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

}  // namespace

int64_t integer_from_bits(uint64_t v, Elem e) {
  const int bits = bit_width(e);
  if (bits == 64) return static_cast<int64_t>(v);
  v &= (uint64_t{1} << bits) - 1;
  const bool plain = bits == 1 || (e >= Elem::kUi4 && e <= Elem::kUi64);
  const uint64_t half = uint64_t{1} << (bits - 1);
  return static_cast<int64_t>(plain ? v : (v ^ half) - half);
}

Attr make_dense(Type type, std::vector<int64_t> ints, std::vector<double> reals) {
  if (is_float(type.elem())) {
    const auto other = [&](double v) { return !same_bits(v, reals[0]); };
    if (!reals.empty() && std::ranges::none_of(reals, other)) reals.resize(1);
    return Attr::dense_real(type, std::move(reals));
  }
  const auto other = [&](int64_t v) { return v != ints[0]; };
  if (!ints.empty() && std::ranges::none_of(ints, other)) ints.resize(1);
  return Attr::dense_int(type, std::move(ints));
}

bool can_be_dense(Type type) {
  const bool shaped = type.is_vector() || type.kind() == TypeKind::kTensor;
  return shaped && type.num_elements() != kDynamic && !is_semaphore(type.elem());
}

std::expected<Attr, std::string> dense_from_bytes(Type type, std::string_view bytes) {
  if (!can_be_dense(type)) return std::unexpected(fmt::format("dense<...> of type {}", type.str()));
  const Elem e = type.elem();
  const auto elements = static_cast<uint64_t>(type.num_elements());
  const size_t width = static_cast<size_t>(bit_width(e) + 7) / 8;
  const bool packed = e == Elem::kI1 && bytes.size() == (elements + 7) / 8;
  if (!packed && bytes.size() != width && bytes.size() != elements * width) {
    return std::unexpected(
        fmt::format("dense<...> holds {} bytes but its type is {}", bytes.size(), type.str()));
  }
  const auto at = [&](size_t i) { return uint64_t{static_cast<uint8_t>(bytes[i])}; };
  const size_t have = packed ? elements : bytes.size() / width;
  std::vector<int64_t> ints;
  std::vector<double> reals;
  for (size_t i = 0; i < have; ++i) {
    uint64_t v = 0;
    if (packed) {
      v = (at(i / 8) >> (i % 8)) & 1U;
    } else {
      for (size_t b = width; b-- > 0;) v = v << 8 | at(i * width + b);
    }
    if (is_float(e)) {
      reals.push_back(float_from_bits(v, e));
    } else {
      ints.push_back(integer_from_bits(v, e));
    }
  }
  return make_dense(type, std::move(ints), std::move(reals));
}

}  // namespace gridless::ir
