// Multi-head latent attention (DeepSeek-V2, 2024) without rotary embeddings, in the absorbed form:
// a token leaves one latent vector c and a few more key dimensions kx, shared by all heads, and the
// matrices that would expand them to keys and values of every head are applied to the queries and
// to the result instead:
//
//   q_n' = W_uk,n^T q_n;   score = scale (q_n' . c + q_n,extra . kx);   o_n = W_uv,n sum_t p_t c_t
//
// Each of the two matrices of all heads is one product: head n of row r is row n R + r of its
// activations, with the inputs of other heads zero before W_uk, and the outputs of other heads
// dropped after W_uv. (The matrix units take more rows for nothing, and their weights once.)
#pragma once

#include "gridless/blocks/row_runs.h"

namespace gridless::blocks {

struct LatentShape {
  int64_t heads = 0;                       // of this core
  int64_t latent = 0;                      // of c
  int64_t nope = 0, extra = 0, value = 0;  // of a head: query against c, against kx, and its output

  int64_t latent_panels() const { return panels(latent); }
  // A token in the cache: c, and kx from a whole panel on.
  int64_t token_width() const { return round_to_lanes(latent) + round_to_lanes(extra); }
  // Queries: the dimensions against c of all heads, and those against kx from a whole panel on.
  int64_t nope_panels() const { return panels(heads * nope); }
  int64_t query_panels() const { return nope_panels() + panels(heads * extra); }
};

// token: bf16 [R, token_width] = rms_norm(c) | kx; c: f32 [latent_panels, R, 128]; kx: f32
// [panels(extra), R, 128]; norm: f32 [latent_panels, 128].
void latent_token(Ref c, Ref kx, Ref norm, const LatentShape& s, double eps, Ref token);

// The queries against c of each head alone: bf16 [nope_panels, heads R, 128]. y: f32
// [query_panels, R, 128].
void separate_heads(Ref y, const LatentShape& s, Ref out);

// queries: bf16 [heads, R, token_width], from those times W_uk (f32 [latent_panels, heads R, 128])
// and y as above.
void latent_queries(Ref absorbed, Ref y, const LatentShape& s, Ref queries);

// Attention of every active row over positions 0 .. pos. cache: bf16 HBM [pages, 1, 128,
// token_width]; out: bf16 [latent_panels, heads R, 128].
void latent_attention(Ref queries, Ref cache, const StepRows& rows, const RowRuns& runs,
                      const LatentShape& s, double scale, Ref out);

// Of y = out W_uv, f32 [panels(heads value), heads R, 128], the outputs of each head in its own
// row: context, bf16 [panels(heads value), R, 128]; then context = bf16(context *
// bf16(sigmoid(gate))).
void gated_values(Ref y, Ref gate, const LatentShape& s, Ref context);

}  // namespace gridless::blocks
