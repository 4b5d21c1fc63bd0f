// The gated delta rule for many rows at once, on the matrix units.
//
// For rows i = 1 .. n of one head, with keys k_i and values v_i, factors beta_i and decays
// exp(g_i), and the state S before them, the recurrence
//
//   S_i = exp(g_i) S_{i-1} + k_i u_i^T,   u_i = beta_i (v_i - exp(g_i) S_{i-1}^T k_i),
//   o_i = S_i^T q_i
//
// is, with c_i = g_1 + .. + g_i and D_ij = exp(c_i - c_j) for j <= i, else 0:
//
//   (I + A) U = diag(beta) (V - diag(exp c) K S),   A_ij = beta_i D_ij (k_i . k_j) for j < i
//   O = diag(exp c) Q S + (D * Q K^T) U
//   S_n = exp(c_n) S + (diag(exp(c_n - c)) K)^T U
//
// The triangular system is solved by blocks of 8 rows: what the blocks before add is a product, and
// within a block I + A is inverted by (I - A)(I + A^2)(I + A^4), exact as A^8 = 0. (For more rows
// such powers may grow beyond what f32 can cancel again: keys that repeat make A a matrix of ones.)
#pragma once

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"

namespace gridless::blocks {

// f32: q, k [R, key_dim], v [R, value_dim], beta and g [R, 1] (g = log decay, not positive), state
// [key_dim, value_dim]; R a multiple of 8. A row with k = 0, beta = 0 and g = 0 changes nothing.
// All products have f32 operands; sums are taken in another order than the recurrence's.
struct DeltaChunk {
  lang::Vec outputs;  // [R, value_dim]
  lang::Vec state;    // after the last row
};
DeltaChunk delta_chunk(lang::Vec q, lang::Vec k, lang::Vec v, lang::Vec beta, lang::Vec g,
                       lang::Vec state);

}  // namespace gridless::blocks
