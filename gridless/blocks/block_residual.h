// Block attention residual (Kimi, 2025): the residual stream as a running sum of the current block
// of layers (prefix) and the sums of the blocks before it; what a layer reads is a mixture of
// these, weighted by attention over them:
//
//   s_j = (v_j . w) / sqrt(mean(v_j^2) + eps);   p = softmax(s);   y = bf16(sum_j p_j v_j)
//
// with v_j the saved blocks in order, then the prefix. All values are those of bf16, held as f32.
#pragma once

#include "gridless/blocks/activations.h"

namespace gridless::blocks {

class BlockResidual {
 public:
  // Room for `blocks` saved sums, all zero; takes its memory from the scope around.
  BlockResidual(Kernel& k, int64_t width, int64_t rows, int64_t blocks, double eps);

  // The running sum, f32 panel-major [n, R, 128].
  Ref prefix() const { return prefix_; }

  // out = the mixture of the first `saved` blocks and the prefix. w, f32 [n, 128]: the norm's
  // weight times the projection's. out: f32 [n, R, 128].
  void mix(Scalar saved, Ref w, Ref out) const;

  // blocks[i] = prefix.
  void save(Scalar i) const;

  // prefix = y if the block starts anew, else bf16(prefix + y).
  void add(Ref y, Scalar anew) const;

 private:
  Vec score(Vec v, Vec w) const;

  Kernel& k_;
  int64_t width_;
  double eps_;
  Ref prefix_, blocks_;  // [n, R, 128], [blocks, n, R, 128]
};

}  // namespace gridless::blocks
