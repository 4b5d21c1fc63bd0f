#include "kernels/array.h"

#include <cmath>
#include <cstring>

#include "gridless/base/check.h"
#include "gridless/base/numerics.h"

namespace gridless::kernels {

namespace {

size_t count(const Shape& s) {
  size_t n = 1;
  for (int64_t d : s) n *= static_cast<size_t>(d);
  return n;
}

template <typename T>
void put(std::vector<std::byte>& out, size_t i, T v) {
  std::memcpy(out.data() + i * sizeof(T), &v, sizeof(T));
}

template <typename T>
T get(std::span<const std::byte> in, size_t i) {
  T v;
  std::memcpy(&v, in.data() + i * sizeof(T), sizeof(T));
  return v;
}

}  // namespace

Array::Array(Elem e, Shape s) : elem(e), shape(std::move(s)), values(count(shape), 0.0) {}

size_t Array::offset(std::initializer_list<int64_t> index) const {
  GRIDLESS_CHECK(index.size() == shape.size(), "{} indices into rank {}", index.size(),
                 shape.size());
  size_t at = 0, d = 0;
  for (int64_t i : index) at = at * static_cast<size_t>(shape[d++]) + static_cast<size_t>(i);
  return at;
}

std::vector<std::byte> Array::bytes() const {
  std::vector<std::byte> out(values.size() * static_cast<size_t>(ir::bit_width(elem) / 8));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (elem) {
      case Elem::kF32:
        put(out, i, static_cast<float>(values[i]));
        break;
      case Elem::kBf16:
        put(out, i, to_bf16(static_cast<float>(values[i])).bits);
        break;
      case Elem::kI32:
        put(out, i, static_cast<int32_t>(values[i]));
        break;
      case Elem::kI8:
        put(out, i, static_cast<int8_t>(values[i]));
        break;
      default:
        GRIDLESS_CHECK(false, "no bytes for {}", ir::spelling(elem));
    }
  }
  return out;
}

Array Array::from_bytes(Elem e, Shape s, std::span<const std::byte> bytes) {
  Array a(e, std::move(s));
  for (size_t i = 0; i < a.values.size(); ++i) {
    switch (e) {
      case Elem::kF32:
        a.values[i] = get<float>(bytes, i);
        break;
      case Elem::kBf16:
        a.values[i] = to_f32(bf16{get<uint16_t>(bytes, i)});
        break;
      case Elem::kI32:
        a.values[i] = get<int32_t>(bytes, i);
        break;
      case Elem::kI8:
        a.values[i] = get<int8_t>(bytes, i);
        break;
      default:
        GRIDLESS_CHECK(false, "no values for {}", ir::spelling(e));
    }
  }
  return a;
}

double rounded(Elem e, double x) {
  if (e == Elem::kF32) return static_cast<float>(x);
  if (e == Elem::kBf16) return round_bf16(static_cast<float>(x));
  return std::nearbyint(x);
}

Array normal(Rng& rng, Elem e, Shape shape, double deviation) {
  Array a(e, std::move(shape));
  std::normal_distribution<double> draw(0.0, deviation);
  for (double& v : a.values) v = rounded(e, draw(rng));
  return a;
}

Array whole(Rng& rng, Elem e, Shape shape, int64_t least, int64_t most) {
  Array a(e, std::move(shape));
  std::uniform_int_distribution<int64_t> draw(least, most);
  for (double& v : a.values) v = static_cast<double>(draw(rng));
  return a;
}

}  // namespace gridless::kernels
