// Region: which elements of a buffer an access touches, as plain numbers.
#pragma once

#include "gridless/emulate/view.h"

namespace gridless::emulate {

// Element offset + sum of i_d * stride_d of the buffer, 0 <= i_d < size_d, in the order of the
// view's dimensions. A view of elements wider than the buffer's has one more dimension, the parts
// of an element; one of narrower elements is rounded up to whole buffer elements.
struct Region {
  struct Dim {
    int64_t size, stride;
  };
  int64_t offset = 0;
  std::vector<Dim> dims;
  bool empty = false;

  // Calls run(first, count, stride) for each innermost run, in row-major order of the dims.
  template <typename F>
  void for_each_run(const F& run) const;
};

// The block of a view that starts at `starts` and has `sizes` elements, `steps` apart (empty: 1).
Region region_of(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps);
// The whole view.
Region region_of(const View& v);

template <typename F>
void Region::for_each_run(const F& run) const {
  if (empty) return;
  if (dims.empty()) return run(offset, int64_t{1}, int64_t{1});
  const size_t last = dims.size() - 1;
  std::vector<int64_t> at(last, 0);
  for (int64_t first = offset;;) {
    run(first, dims[last].size, dims[last].stride);
    size_t d = last;
    for (; d-- > 0;) {
      first += dims[d].stride;
      if (++at[d] < dims[d].size) break;
      first -= dims[d].stride * dims[d].size;
      at[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

}  // namespace gridless::emulate
