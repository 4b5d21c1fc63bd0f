#include "gridless/blocks/layer_constants.h"

namespace gridless::blocks {

LayerConstants::LayerConstants(Ref all) : all_(all) {
  Kernel& k = *all.kernel();
  Shape shape = all.shape();
  shape[0] = 2;
  ring_ = k.vmem(all.elem(), shape);
  done_ = k.dma_sems(2);
  start(0);
}

void LayerConstants::start(Scalar i) const {
  all_.kernel()->copy(all_.at(i), ring_.at(i % 2), done_.at(i % 2));
}

Ref LayerConstants::take(Scalar i) const {
  Kernel& k = *all_.kernel();
  k.wait(all_.at(i), ring_.at(i % 2), done_.at(i % 2));
  if (all_.dim(0) > 1) k.if_(i + 1 < all_.dim(0), [&] { start(i + 1); });
  return ring_.at(i % 2);
}

}  // namespace gridless::blocks
