// How a vector lies in vector registers of 8 sublanes x 128 lanes of 32 bits: the last two
// dimensions in tiles, elements of less than 32 bits packed along the rows, the others outside.
#pragma once

#include <algorithm>

#include "gridless/base/integers.h"
#include "gridless/chips/tpu7x.h"
#include "gridless/ir/type.h"

namespace gridless::time {

struct Registers {
  int64_t outer = 1, rows = 1, cols = 1;  // registers in each direction
  int64_t count() const { return outer * rows * cols; }
};

// Rows of a register: 8 for 32 bits, 16 for bf16. A mask (i1) lies as the vectors it was made from.
inline int64_t register_rows(ir::Elem e) {
  const int bits = e == ir::Elem::kI1 ? 32 : ir::bit_width(e);
  return chips::kTpu7x.sublanes * std::max(1, 32 / std::max(bits, 1));
}

inline Registers registers_of(ir::Type type) {
  const ir::Shape& s = type.shape();
  Registers r;
  if (s.empty()) return r;
  for (size_t d = 0; d + 2 < s.size(); ++d) r.outer *= s[d];
  r.cols = ceil_div(s.back(), chips::kTpu7x.lanes);
  if (s.size() > 1) r.rows = ceil_div(s[s.size() - 2], register_rows(type.elem()));
  return r;
}

// Whether it has fewer rows than a register.
inline bool is_narrow(ir::Type type) {
  const ir::Shape& s = type.shape();
  return s.size() < 2 || s[s.size() - 2] < register_rows(type.elem());
}

}  // namespace gridless::time
