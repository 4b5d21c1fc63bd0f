// Sum over all cores, exchanged directly: every core sends its vector to every other one and adds
// what it received in the order of core numbers, so all cores get the same bits.
#pragma once

#include "gridless/blocks/activations.h"

namespace gridless::blocks {

class AllReduce {
 public:
  // `exchanges`: how many different sums a layer has. Each has a receive buffer of its own, used
  // once per layer. A buffer is free again when its next message arrives: a core sends exchange e +
  // exchanges only after it has received all messages of exchange e + 1, and those were sent after
  // their senders had added up exchange e. So two or more exchanges per layer need no credits.
  AllReduce(Kernel& k, int exchanges, int64_t panels, int64_t rows);

  // x += sum over cores of y[0 .. panels(x)). Exchange number `which` of the layer.
  void add_sum(int which, Ref y, Ref x);

 private:
  Kernel& k_;
  Ref received_;  // f32 [exchanges, cores, n, R, 128]
  Sem arrived_, sent_;
};

}  // namespace gridless::blocks
