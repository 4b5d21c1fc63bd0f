#include "gridless/emulate/region.h"

namespace gridless::emulate {

namespace {

// The buffer rows of narrowed dimensions. A step of whole rows is a dimension of its own; what the
// others reach within a row or across a few is one run of rows.
void add_narrow_rows(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps,
                     Region& r) {
  int64_t first = v.narrow_row, reach = 0;
  for (size_t d = 0; d < v.shape.size(); ++d) {
    if (!v.is_narrow(d) || sizes[d] == 0) continue;
    const int64_t step = v.narrow_step[d] * (steps.empty() ? 1 : steps[d]);
    first += starts[d] * v.narrow_step[d];
    if (step % v.narrow == 0) {
      r.dims.push_back({sizes[d], step / v.narrow * v.narrow_stride});
    } else {
      reach += (sizes[d] - 1) * step;
    }
  }
  r.offset += first / v.narrow * v.narrow_stride;
  const int64_t rows = (first + reach) / v.narrow - first / v.narrow + 1;
  if (rows > 1) r.dims.push_back({rows, v.narrow_stride});
}

}  // namespace

Region region_of(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps) {
  Region r{.offset = v.offset};
  for (size_t d = 0; d < v.shape.size(); ++d) {
    if (sizes[d] == 0) r.empty = true;
    if (v.is_narrow(d)) continue;
    r.offset += starts[d] * v.stride[d];
    r.dims.push_back({sizes[d], v.stride[d] * (steps.empty() ? 1 : steps[d])});
  }
  if (v.narrow > 1) add_narrow_rows(v, starts, sizes, steps, r);
  if (v.widen > 1) r.dims.push_back({v.widen, v.widen_stride});
  return r;
}

Region region_of(const View& v) { return region_of(v, Shape(v.shape.size(), 0), v.shape, {}); }

}  // namespace gridless::emulate
