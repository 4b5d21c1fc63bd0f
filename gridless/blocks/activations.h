// Panel-major activations: a vector of width n for R rows is a ref [ceil(n/128), R, 128]; lanes
// beyond n are zero. A part of the width is then a run of whole panels, so kernels never shift
// lanes to reach it.
#pragma once

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"

namespace gridless::blocks {

using namespace gridless::lang;  // NOLINT: blocks are written in the language

inline constexpr int64_t kLanes = 128;
inline int64_t panels(int64_t width) { return (width + kLanes - 1) / kLanes; }
inline int64_t round_to_lanes(int64_t width) { return panels(width) * kLanes; }

// A VMEM buffer for `width` x R activations.
Ref activations(Kernel& k, Elem e, int64_t width, int64_t rows);

// A copy in VMEM of what lies in HBM, made before it returns.
Ref copy_in(Kernel& k, Ref from);

// Columns [start, start + width) of panel-major `x` as a matrix [R, width].
Vec columns(Ref x, int64_t start, int64_t width);

// Matrix [R, n] with zero lanes behind it, [R, width].
Vec pad_lanes(Vec matrix, int64_t width);

// f32 values rounded to those of bf16.
Vec round_to_bf16(Vec x);
// The same, in place.
void round_to_bf16(Ref x);

// x / (1 + exp(-x)), f32.
Vec silu(Vec x);

// Stores matrix [R, width] to panel-major `x` from column 0; fills the last panel with zeros.
void store_columns(Ref x, Vec matrix);

// Row r (a run-time value) of a matrix [R, n] as [1, n], exactly (the rows are selected, not
// added).
Vec pick_row(Vec matrix, Scalar r);

// x += y (composite add_into); y may have more panels than x.
void add_into(Ref x, Ref y);

}  // namespace gridless::blocks
