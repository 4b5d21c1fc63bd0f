#include "gridless/emulate/region.h"

namespace gridless::emulate {

Region region_of(const View& v, const Shape& starts, const Shape& sizes, const Shape& steps) {
  Region r{.offset = v.offset};
  bool narrow_seen = false;
  for (size_t d = 0; d < v.shape.size(); ++d) {
    const int64_t step = steps.empty() ? 1 : steps[d];
    if (sizes[d] == 0) r.empty = true;
    if (static_cast<int>(d) == v.narrow_dim) {
      narrow_seen = true;
      const int64_t first = v.narrow_row + starts[d];
      const int64_t last = first + (sizes[d] - 1) * step;
      r.offset += first / v.narrow * v.narrow_stride;
      r.dims.push_back({last / v.narrow - first / v.narrow + 1, v.narrow_stride});
      continue;
    }
    r.offset += starts[d] * v.stride[d];
    r.dims.push_back({sizes[d], v.stride[d] * step});
  }
  if (v.narrow > 1 && !narrow_seen) r.offset += v.narrow_row / v.narrow * v.narrow_stride;
  if (v.widen > 1) r.dims.push_back({v.widen, v.widen_stride});
  return r;
}

Region region_of(const View& v) { return region_of(v, Shape(v.shape.size(), 0), v.shape, {}); }

}  // namespace gridless::emulate
