#include "gridless/blocks/dynamic_conv.h"

#include <bit>

namespace gridless::blocks {

namespace {

// The dynamic terms of panel p's channels, [R, 128]: lane l is that of group l / group.
Vec spread_groups(Ref dynamic, int64_t first, const DynamicConvShape& c) {
  Kernel& k = *dynamic.kernel();
  const int64_t rows = dynamic.dim(1);
  const Vec terms =
      reshape(dynamic.load({first / kLanes, 0, 0}, {1, rows, kLanes}), {rows, kLanes});
  if (c.group == 1) return terms;
  const Vec lane = iota(k, {rows, kLanes}, 1);
  const int shift = std::countr_zero(static_cast<uint64_t>(c.group));
  return gather(terms, shift_right_logical(lane, shift) + (first % kLanes), 1);
}

}  // namespace

void dynamic_conv(Ref x, Ref base, Ref dynamic, int64_t variant, const DynamicConvShape& c,
                  Ref out) {
  Kernel& k = *x.kernel();
  const int64_t rows = x.dim(1), count = panels(c.width);
  const Vec row = iota(k, {rows, kLanes}, 0);
  for (int64_t p = 0; p < count; ++p) {
    const Vec now = cast(reshape(x.load({p, 0, 0}, {1, rows, kLanes}), {rows, kLanes}), Elem::kF32);
    const Vec before = where(row == 0, 0.0, roll(now, 1, 0));
    Vec total;
    for (int64_t tap = 0; tap < kDynamicTaps; ++tap) {
      const int64_t first = (variant * kDynamicTaps + tap) * c.groups() + p * c.groups_per_panel();
      const Vec fixed = reshape(base.load({tap, p, 0}, {1, 1, kLanes}), {1, kLanes});
      const Vec term = (spread_groups(dynamic, first, c) + fixed) * (tap == 0 ? now : before);
      total = tap == 0 ? term : total + term;
    }
    out.store(reshape(cast(total, out.elem()), {1, rows, kLanes}), {p, 0, 0});
  }
}

}  // namespace gridless::blocks
