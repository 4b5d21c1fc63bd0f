// The weight stream: every matrix of the step, read through one ring of VMEM slots
// (docs/weight_stream.md, architecture.md section 6).
//
// Chunk g sits at row g * chunk_rows of the image and goes to slot g % slots. Chunks of a matrix
// are used up to `together` at a time, one wait after another and then all products: a wait drains
// the matrix units. When chunk g has been used, the copy of chunk g + slots starts in its slot: the
// whole ring is on the way while the core does something else (exchanges, attention). So the next
// matrix, the next layer and the head are always on the way while this chunk is multiplied, without
// a branch per matrix.
#pragma once

#include <functional>

#include "gridless/blocks/activations.h"
#include "gridless/weights/stream_layout.h"

namespace gridless::blocks {

class WeightStream {
 public:
  // Allocates the ring in the current scope and starts the first copies. `image`: i32 [rows, 128]
  // in HBM.
  WeightStream(Kernel& k, Ref image, const weights::StreamLayout& layout, int slots = 4);

  // Says where the program is: the matrices that follow are those of the front (as at the start),
  // of this layer, or of the tail.
  // `chunks_on`: those of an equal layer so many chunks later.
  void enter_layer(Scalar layer, Scalar chunks_on = 0);
  void enter_tail();

  // y = x W for matrix `name`: x bf16 panel-major, y f32 [panels of the matrix, R, 128].
  void project(const std::string& name, Ref x, Ref y);
  // The same for several inputs, of any row counts, while the matrix streams by once.
  void project(const std::string& name, const std::vector<Ref>& x, const std::vector<Ref>& y);
  // The same as the first into a new buffer of the current scope.
  Ref project(const std::string& name, Ref x);

  // The same group by group: `use(group, y)` gets f32 [panels_per_chunk, R, 128] of each.
  void project_groups(const std::string& name, Ref x,
                      const std::function<void(Scalar group, Ref y)>& use);

  const weights::MatrixLayout& matrix(const std::string& name) const;

 private:
  void start(Scalar chunk);
  // Waits for `count` chunks, runs `use` on the slot of each, starts as many others in these slots.
  void take(Scalar first, int64_t count, const std::function<void(int64_t i, Ref tile)>& use);
  // All products of a matrix: multiply(part, tile, g, i) makes those of a chunk of group g, the
  // i-th of the groups that are taken together; then use(g, i), if there is one.
  using Multiply = std::function<void(int64_t part, Ref tile, Scalar group, int64_t i)>;
  struct Together {
    int64_t groups, parts;
  };
  Together together(const weights::MatrixLayout& m) const;
  void products(const weights::MatrixLayout& m, const Multiply& multiply,
                const std::function<void(Scalar group, int64_t i)>& use);

  Kernel& k_;
  Ref image_;
  const weights::StreamLayout& layout_;
  int slots_, together_;
  Ref ring_;
  Sem done_;
  Scalar base_ = 0;  // first chunk of the front, the current layer or the tail
};

}  // namespace gridless::blocks
