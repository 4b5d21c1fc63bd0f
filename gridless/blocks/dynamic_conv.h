// The dynamic convolution of DFlash2: over the rows of a block, two taps (a row and the one before
// it; nothing stands before row 0), whose kernel is a base per channel plus a term per group of
// channels that the row itself predicts:
//
//   out[t, c] = sum over tap of (base[tap, c] + dynamic[t, tap, c / group]) * x[t - tap, c]
//
// in f32. There are two variants of the kernel, for what enters a sublayer and for what leaves it;
// both dynamic terms come from one projection of what enters.
#pragma once

#include "gridless/blocks/activations.h"

namespace gridless::blocks {

inline constexpr int64_t kDynamicTaps = 2, kDynamicVariants = 2;

struct DynamicConvShape {
  int64_t width = 0;  // channels
  int64_t group = 0;  // channels that share a dynamic term: divides 128

  int64_t groups_per_panel() const { return kLanes / group; }
  // Groups of one variant and tap, whole panels of channels: a panel's groups never straddle two
  // panels of the projection.
  int64_t groups() const { return panels(width) * groups_per_panel(); }
  // Outputs of the projection: [variant, tap, group].
  int64_t projection() const { return kDynamicVariants * kDynamicTaps * groups(); }
};

// x: f32 or bf16 panel-major; base: f32 [2 taps, n, 128] of the variant; dynamic: the projection,
// f32 panel-major; out: f32 or bf16 like x (rounded once), which may be x itself.
void dynamic_conv(Ref x, Ref base, Ref dynamic, int64_t variant, const DynamicConvShape& c,
                  Ref out);

}  // namespace gridless::blocks
