#include "gridless/blocks/collectives/exchange.h"

namespace gridless::blocks {

Shape stacked(int64_t first, const Shape& rest) {
  Shape out = {first};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

Shape concatenated(int64_t count, const Shape& part) {
  Shape out = part;
  out[0] *= count;
  return out;
}

Vec sum_of(std::span<const Ref> values) {
  Vec sum = values[0].load();
  for (const Ref& v : values.subspan(1)) sum = sum + v.load();
  return sum;
}

Inbox::Inbox(Kernel& k, Elem elem, const Shape& shape, int semaphores)
    : boxes_(k.vmem(elem, stacked(2, shape))),
      semaphores_(k.dma_sems(int64_t{2} * semaphores)),
      count_(semaphores) {}

}  // namespace gridless::blocks
