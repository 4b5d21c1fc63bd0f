// Small constants of many layers (norms, taps, biases): those of one layer at a time in VMEM, the
// next ones on their way.
#pragma once

#include "gridless/blocks/activations.h"

namespace gridless::blocks {

class LayerConstants {
 public:
  // `all`: in HBM, one entry of the first dimension per layer. Starts the first copy; memory and
  // semaphores come from the scope around.
  explicit LayerConstants(Ref all);

  // Layer i's, valid until the next call; the calls take 0, 1, 2, ... in turn, to the last.
  Ref take(Scalar i) const;

 private:
  void start(Scalar i) const;

  Ref all_, ring_;
  Sems done_;
};

}  // namespace gridless::blocks
