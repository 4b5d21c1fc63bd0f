// The routed experts of a layer: whoever was chosen by any row is read once, and all rows are
// multiplied with it, with weight zero where a row did not choose it. An expert's matrices lie in
// one slab, fetched with one copy into one of several slots; slot i % slots holds expert i of the
// list of the chosen, so what is in a slot follows from the list alone.
#pragma once

#include "gridless/blocks/mlp.h"
#include "gridless/blocks/router.h"

namespace gridless::blocks {

// A core's part of one expert: `gate_up` has the gate's outputs and then the up projection's, as
// one matrix, `down` all outputs from this core's inner channels. `down` follows in the slab.
struct ExpertLayout {
  int64_t inner = 0;  // channels
  weights::MatrixLayout gate_up, down;

  int64_t down_row() const { return gate_up.chunks() * gate_up.used_rows(); }
  int64_t slab_rows() const;  // a multiple of 8
};
ExpertLayout expert_layout(int64_t latent, int64_t inner, weights::Format format);

class Experts {
 public:
  // slabs: i32 HBM [layers, experts of this core, slab_rows, 128]. Slots and semaphores come from
  // the scope around.
  Experts(Ref slabs, const ExpertLayout& layout, const Situ& situ, int slots);

  // Starts the copies of the first experts of the list, as many as there are slots, so that other
  // work can be done while they come. Exactly one add() must follow, for the same layer and list.
  void prefetch(Scalar layer, const ChosenExperts& chosen);

  // sum += the weighted outputs of the chosen experts, each rounded to bf16 (of this core's part).
  // x: bf16 panel-major of the latent width; gates: as from route(); sum: f32 panel-major.
  void add(Scalar layer, const ChosenExperts& chosen, Ref x, Ref gates, Ref sum);

 private:
  void start(Scalar layer, const ChosenExperts& chosen, Scalar i);
  void multiply(const weights::MatrixLayout& m, Ref x, Ref slab, int64_t first_row, Ref y);

  Kernel& k_;
  Ref slabs_;
  const ExpertLayout& layout_;
  Situ situ_;
  int slots_;
  Ref ring_;
  Sems arrived_;
};

}  // namespace gridless::blocks
