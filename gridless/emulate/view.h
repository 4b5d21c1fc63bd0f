// View: where the elements of a ref lie in a buffer. Every ref value of the IR is one.
//
// An element of the view at index (i0, i1, ...) is element offset + sum of i_d * stride_d of the
// buffer, in units of the buffer's own elements, with two generalisations for memref_bitcast, which
// on the chip regroups the rows that share a 32-bit word:
//   widened by r   (bf16[16,256] seen as i32[8,256], r = 2) an element is r buffer elements,
//   widen_stride
//                  apart: rows r*i .. r*i+r-1, the first in the low bits;
//   narrowed by r  (i32[8,256] seen as bf16[16,256]) row p of the narrowed rows is part p mod r of
//                  buffer row p / r, part 0 in the low bits. p is narrow_row + sum of i_d *
//                  narrow_step_d; a dimension has a narrow_step or a stride, not both.
// Both stay true under slices, squeezes and reshapes, so a View never copies.
#pragma once

#include <string>

#include "gridless/emulate/buffer.h"
#include "gridless/emulate/value.h"

namespace gridless::emulate {

struct View {
  Buffer* buffer = nullptr;
  Elem elem = Elem::kF32;
  Shape shape;
  Shape stride;
  int64_t offset = 0;
  int widen = 1;
  int64_t widen_stride = 0;
  int narrow = 1;
  Shape narrow_step;  // per dimension; empty unless narrowed
  int64_t narrow_row = 0;
  int64_t narrow_stride = 0;

  int64_t num_elements() const;
  // Bytes that a DMA of this view moves and counts.
  int64_t num_bytes() const;
  bool is_narrow(size_t d) const { return narrow > 1 && narrow_step[d] != 0; }
  bool plain() const { return widen == 1 && narrow == 1; }
  // Row-major without gaps, in the buffer's own elements.
  bool contiguous() const;
  std::string str() const;  // "argument 2, 8x128xf32 at element 1024"
  bool operator==(const View&) const = default;
};

// The whole of a buffer.
View whole(Buffer& buffer);

// The ops on refs. On a request that cannot be met they return an empty string or say why.
// slice: `starts` and `sizes` in elements of the view; the caller has checked the bounds.
View slice(const View& v, const Shape& starts, const Shape& sizes);
std::string squeeze(const View& v, const Shape& shape, View& out);
std::string reshape(const View& v, const Shape& shape, View& out);
std::string bitcast(const View& v, Elem elem, const Shape& shape, View& out);

// Empty if starts[d] + (sizes[d] - 1) * steps[d] lies in the view for all d, else what does not.
std::string outside(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps);

// Cuts such a block down to what lies in the view; false: nothing does.
bool clip(const View& v, Shape& starts, Shape& sizes, const Shape& steps);

// The elements of a block of the view (sizes per dimension, steps apart) in row-major order.
// Bounds have been checked.
Vector read_vector(const View& v, const Shape& starts, const Shape& steps, Type type);
// mask: one entry per element, or empty for all.
void write_vector(const View& v, const Shape& starts, const Shape& steps, const Vector& value,
                  std::span<const int32_t> mask);
Scalar read_scalar(const View& v, const Shape& at);
void write_scalar(const View& v, const Shape& at, const Scalar& value);

// dst = src, of one shape and one element format; through a temporary, so they may overlap. Nothing
// where one of them has no data (Buffer::absent).
void copy_view(const View& src, const View& dst);

}  // namespace gridless::emulate
