// Array: the data of one operand or result, for inputs and references of the gallery. Values are
// doubles that the element format represents exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "gridless/ir/type.h"

namespace gridless::kernels {

using ir::Elem;
using ir::Shape;

struct Array {
  Elem elem = Elem::kF32;
  Shape shape;
  std::vector<double> values;  // row-major

  Array() = default;
  Array(Elem e, Shape s);  // zeros
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  double& at(std::initializer_list<int64_t> index) { return values[offset(index)]; }
  double at(std::initializer_list<int64_t> index) const { return values[offset(index)]; }

  // The bytes as a kernel sees them: row-major, little-endian. f32, bf16, i32 and i8.
  std::vector<std::byte> bytes() const;
  static Array from_bytes(Elem e, Shape s, std::span<const std::byte> bytes);

 private:
  size_t offset(std::initializer_list<int64_t> index) const;
};

// x rounded to the format, as a double.
double rounded(Elem e, double x);

using Rng = std::mt19937_64;
// Normal numbers with the given deviation, rounded to the format.
Array normal(Rng& rng, Elem e, Shape shape, double deviation = 1.0);
// Whole numbers in [least, most], all equally likely.
Array whole(Rng& rng, Elem e, Shape shape, int64_t least, int64_t most);

}  // namespace gridless::kernels
