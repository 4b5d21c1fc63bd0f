#include "gridless/tpu/runtime/element_type.h"

#include <array>
#include <utility>

namespace gridless::tpu {

Result<int> element_type(std::string_view dtype) {
  // Narrower than a byte: PJRT wants one element per byte on the host, and our tensors are packed.
  static constexpr std::array<std::pair<std::string_view, int>, 17> kTypes = {{
      {"i8", 2},
      {"i16", 3},
      {"i32", 4},
      {"i64", 5},
      {"ui8", 6},
      {"ui16", 7},
      {"ui32", 8},
      {"ui64", 9},
      {"f16", 10},
      {"f32", 11},
      {"f64", 12},
      {"bf16", 13},
      {"f8E5M2", 16},
      {"f8E4M3FN", 17},
      {"f8E4M3B11FNUZ", 18},
      {"f8E4M3", 26},
      {"f8E8M0FNU", 28},
  }};
  for (const auto& [name, number] : kTypes)
    if (name == dtype) return number;
  return input_error("element type {}: the TPU runtime has no buffers of it", dtype);
}

}  // namespace gridless::tpu
