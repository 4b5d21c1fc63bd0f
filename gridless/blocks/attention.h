// Grouped-query attention over a paged key/value cache, one token per row.
//
// A core has H key/value heads of width D side by side in W = H*D lanes, and G query groups: query
// g of head j is the g-th query head that reads it. So all queries of a head meet its keys in one
// matrix product, with the lanes of other heads masked out of the query, whatever D is. Queries and
// keys are half-split (docs/composites.md), which makes RoPE two products and a sum without moving
// lanes between heads.
#pragma once

#include "gridless/blocks/row_runs.h"

namespace gridless::blocks {

struct HeadShape {
  int64_t heads = 0;     // H, of this core
  int64_t groups = 0;    // G
  int64_t head_dim = 0;  // D, even
  int64_t width() const { return heads * head_dim; }
  int64_t padded() const { return round_to_lanes(width()); }
  int64_t half() const { return width() / 2; }
  int64_t padded_half() const { return round_to_lanes(half()); }
};

// i1 [1, padded]: the lanes of head j, of a half-split vector (queries, keys) or of a plain one
// (values, outputs).
Vec lanes_of(Kernel& k, const HeadShape& h, int64_t j, bool half_split);

// cos and sin of position * frequency for every row and lane: f32 VMEM [R, padded_half].
struct RopeTable {
  Ref cos, sin;
};
// `frequencies`: f32 [1, padded_half] in HBM, the frequency of each half-split lane. The angle is
// the f32 product, as in the reference implementations.
RopeTable rope_table(const StepRows& rows, Ref frequencies, const HeadShape& h);

// Splits and rotates the fused projection (f32 panel-major, width (G+2)*W: G queries, key, value)
// into bf16 [G+2, R, padded] (composite qkv_rope).
void qkv_rope(Ref y, const RopeTable& rope, const HeadShape& h, Ref qkv);

// Writes the new keys and values of all active rows to their pages (composite kv_append).
// cache: bf16 HBM [pages, 2, 128, padded], the part of one layer.
void kv_append(Ref qkv, Ref cache, const StepRows& rows, const RowRuns& runs, const HeadShape& h);

// Softmax attention of every active row over positions 0 .. pos (composite decode_attention);
// out: bf16 panel-major of width G*W. A page is read once for up to 8 rows of a run.
void decode_attention(Ref qkv, Ref cache, const StepRows& rows, const RowRuns& runs,
                      const HeadShape& h, double scale, Ref out);

}  // namespace gridless::blocks
