#include "gridless/blocks/all_reduce.h"

#include "gridless/base/check.h"

namespace gridless::blocks {

AllReduce::AllReduce(Kernel& k, int exchanges, int64_t panels, int64_t rows) : k_(k) {
  if (k.cores() == 1) return;
  GRIDLESS_CHECK(exchanges >= 2, "one exchange per layer needs credits");
  received_ = k.vmem(Elem::kF32, {exchanges, k.cores(), panels, rows, kLanes});
  arrived_ = k.dma_sems(exchanges);
  sent_ = k.dma_sem();
}

void AllReduce::add_sum(int which, Ref y, Ref x) {
  if (k_.cores() == 1) {
    add_into(x, y);
    return;
  }
  const int cores = k_.cores();
  const Scalar me = k_.core();
  const Ref mine = y.dim(0) == x.dim(0) ? y : y.rows(0, x.dim(0));
  const Ref box = received_.at(which);
  const Sem arrived = arrived_.at(which);
  std::vector<Copy> copies;
  for (int d = 1; d < cores; ++d) {
    copies.push_back(k_.copy_to((me + d) % cores, mine, box.at(me), sent_, arrived));
  }
  // A local copy, so that the sum below treats all cores alike.
  k_.copy(mine, box.at(me), arrived);
  for (int d = 0; d < cores; ++d) k_.wait_received(box.at((me + d) % cores), arrived);
  k_.composite("add_sum", {x, box}, {{"rows", x.dim(1)}, {"cores", cores}}, [&] {
    Vec sum = box.at(0).load();
    for (int c = 1; c < cores; ++c) sum = sum + box.at(c).load();
    x.store(x.load() + sum);
  });
  for (const Copy& c : copies) c.wait_sent();
}

}  // namespace gridless::blocks
