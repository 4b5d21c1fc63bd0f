// Attention of a draft's block: all rows at once, each over a window of the context and over the
// whole block, later rows included.
#pragma once

#include "gridless/blocks/attention.h"

namespace gridless::blocks {

// Writes the keys and values of the active rows to their pages, as kv_append does, for rows of one
// slot at ascending consecutive positions, the inactive ones last: tile by tile, not row by row.
// The tiles that they fall into are fetched where the object is made, so that they arrive while
// something else is done.
class KvAppendRun {
 public:
  // In the current scope. cache: bf16 HBM [pages, 2, 128, padded], the part of one layer.
  KvAppendRun(Ref cache, const StepRows& rows);
  // qkv: bf16 [G+2, R, padded]. The cache holds the rows when this is over. Once.
  void put(Ref qkv, const HeadShape& h);

 private:
  struct Tile {
    Ref local, home;  // bf16 [2, 16, padded]
    Sem done;
    Scalar start, used;  // its first position; whether a row falls into it
  };
  void patch(const Tile& t, Ref qkv, int64_t key);

  Kernel& k_;
  StepRows rows_;
  std::vector<Tile> tiles_;
};

// Row r of the block attends to the positions t of the cache with first <= t < position(0) and to
// all rows of the block, as far as they are less than `window` from its own position. Softmax in
// f32; the weights are rounded to bf16 for their product with the values. Nothing of the block is
// written to the cache.
// qkv: bf16 [G+2, R, padded], rows of one slot at consecutive positions, all active; out: bf16
// panel-major of width G*W. Every entry of the page table that a position from `first` on reaches
// must be the number of a page, whose numbers are finite.
void block_attention(Ref qkv, Ref cache, const StepRows& rows, Scalar first, const HeadShape& h,
                     int64_t window, double scale, Ref out);

}  // namespace gridless::blocks
