// Gated DeltaNet (Yang, Kautz and Hatamizadeh, 2024), one token per row: a short convolution over
// the last four tokens' projections, then per value head a state matrix that decays, forgets along
// the key and learns the value:
//
//   S <- exp(g) S;  d = beta (v - S k);  S <- S + d k^T;  o = S q
//
// with q and k of unit length, g = -exp(A) softplus(a + dt) and beta = sigmoid(b). The output is
// RMS-normed per head and gated by silu(z).
//
// The projections of a layer come fused, each part from a whole panel on:
//
//   q | k | v | z | b a        with b in lanes 0.., a in the value_heads lanes after it
//
// A core has whole key heads and the value heads that read them, in their order.
//
// Kimi Delta Attention (Kimi Linear, 2025) is the same with a decay of its own for every key
// channel:
//
//   g = bound sigmoid(exp(A) (f + dt))    with f from a projection of low rank, dt per channel
//
// Its output is gated by sigmoid(z), and rounded to bf16 where the reference implementation does:
// after the convolution, o, its norm, the gate and the product.
#pragma once

#include "gridless/blocks/row_runs.h"

namespace gridless::blocks {

struct DeltaShape {
  int64_t key_heads = 0, value_heads = 0;  // of this core; value_heads a multiple of key_heads
  int64_t key_dim = 0, value_dim = 0;      // of one head, at most 128
  double eps = 1e-6;
  bool channel_decay = false;  // Kimi Delta Attention; value_heads = key_heads
  double decay_bound = -5;     // of g, with channel_decay

  int64_t heads_per_key() const { return value_heads / key_heads; }
  int64_t key_panels() const { return panels(key_heads * key_dim); }
  int64_t value_panels() const { return panels(value_heads * value_dim); }
  // What the convolution runs over: q, k and v.
  int64_t conv_panels() const { return 2 * key_panels() + value_panels(); }
  int64_t z_panel() const { return conv_panels(); }
  int64_t gate_panel() const { return conv_panels() + value_panels(); }
  int64_t projection_panels() const { return gate_panel() + 1; }
  // Of the norms of q and k. Kimi Delta Attention has a constant of its own.
  double unit_eps() const { return channel_decay ? 1e-6 : eps; }
  // Rows of DeltaConstants::vectors.
  int64_t dt_row() const { return channel_decay ? key_panels() : 1; }
  int64_t norm_row() const { return 2 * dt_row(); }
  int64_t vector_rows() const { return norm_row() + 1; }
};

inline constexpr int64_t kConvTaps = 4;
// Columns of the convolution's state: the last three before the pending rows, then those.
inline constexpr int64_t kConvColumns = 16;
static_assert(kConvTaps - 1 + kPendingRows <= kConvColumns);

// The constants of one layer, f32 in VMEM.
struct DeltaConstants {
  Ref conv;     // [4, conv_panels, 128]: tap 3 multiplies the newest column
  Ref vectors;  // [8, 128]; row 0: -exp(A) and row 1: dt, both in the lanes of a; row 2: norm
                // weight. With channel_decay [vector_rows, 128]: from row 0 on exp(A) and from
                // row dt_row on dt, both by channel; row norm_row: norm weight
};
inline constexpr int64_t kDeltaVectors = 8;

// The state of one layer, f32 in HBM, by slot.
struct DeltaState {
  Ref matrix;   // [slots, value_heads, key_dim, value_dim], committed
  Ref columns;  // [slots, conv_panels, 16, 128], raw projections
  Ref pending;  // [slots, 8, key_heads + 2 value_heads, 128]: k, d and exp(g) of each pending row
};
Shape delta_matrix_shape(const DeltaShape& d);
Shape delta_columns_shape(const DeltaShape& d);
Shape delta_pending_shape(const DeltaShape& d);

// y: f32 [projection_panels, R, 128]; out: bf16 panel-major of width value_heads * value_dim.
// Rows of a slot whose first has position 0 start from nothing; others go on from the slot's state,
// of whose pending rows keep[slot] count.
enum class DeltaRule {
  kRecurrent,  // row by row: the bits of a row do not depend on how a sequence is cut into launches
  kChunked,    // what a launch commits at once (delta_chunk.h), for prompts; R a multiple of 8
};
void gated_delta(Ref y, const DeltaConstants& constants, const DeltaState& state,
                 const StepRows& rows, const RowRuns& runs, Ref keep, const DeltaShape& d,
                 DeltaRule rule, Ref out);

// The same with channel_decay: y holds no a, and `decay`, f32 [key_panels, R, 128], holds f. y may
// have more panels. Both hold values of bf16.
void kimi_delta(Ref y, Ref decay, const DeltaConstants& constants, const DeltaState& state,
                const StepRows& rows, const RowRuns& runs, Ref keep, const DeltaShape& d, Ref out);

}  // namespace gridless::blocks
