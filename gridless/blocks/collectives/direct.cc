// Everybody sends to everybody.
//
// Why two turns are enough: a core sends for call e + 2 only after it has received all messages of
// call e + 1, and the receiver sent its own of those after it had used up what came for call e.
#include <vector>

#include "gridless/blocks/collectives/exchange.h"

namespace gridless::blocks {

namespace {

class Direct : public Exchange {
 public:
  Direct(Kernel& k, const CollectiveSpec& s)
      : k_(k),
        members_(k, s.group),
        part_(s.part),
        scatters_(s.kind == CollectiveKind::kReduceScatter || s.kind == CollectiveKind::kAllToAll),
        sums_(s.kind == CollectiveKind::kReduceScatter || s.kind == CollectiveKind::kAllReduce),
        inbox_(k, s.elem,
               sums_ ? stacked(s.group.size, s.part) : concatenated(s.group.size, s.part)),
        sent_(k.dma_sem()) {
    if (sums_) sum_ = k.vmem(s.elem, s.part);
  }

  Ref run(Ref in, Scalar turn) override {
    exchange(in, turn);
    const Ref box = inbox_.box(turn);
    if (sums_) sum_.store(sum_of(terms(box)));
    wait_all_sent(in);
    return sums_ ? sum_ : box;
  }

  void add_to(Ref x, Ref in, Scalar turn) override {
    exchange(in, turn);
    const Ref box = inbox_.box(turn);
    k_.composite("add_sum", {x, box}, {{"rows", x.dim(1)}, {"cores", members_.size()}},
                 [&] { x.store(x.load() + sum_of(terms(box))); });
    wait_all_sent(in);
  }

 private:
  // What member i gets from here, and where what comes from it lies.
  Ref outgoing(Ref in, Scalar i) const { return scatters_ ? part_of(in, i, part_) : in; }
  Ref incoming(Ref box, Scalar i) const { return sums_ ? box.at(i) : part_of(box, i, part_); }

  void exchange(Ref in, Scalar turn) {
    const Ref box = inbox_.box(turn), mine = incoming(box, members_.me());
    const Sem arrived = inbox_.arrived(turn);
    repeat(k_, 1, members_.size(), [&](Scalar d) {
      const Scalar to = members_.after(d);
      k_.copy_to(members_.core(to), outgoing(in, to), mine, sent_, arrived);
    });
    // A local copy, so that the sum treats all members alike.
    k_.copy(outgoing(in, members_.me()), mine, arrived);
    repeat(k_, 0, members_.size(),
           [&](Scalar d) { k_.wait_received(incoming(box, members_.after(d)), arrived); });
  }

  std::vector<Ref> terms(Ref box) const {
    std::vector<Ref> all;
    for (int i = 0; i < members_.size(); ++i) all.push_back(box.at(i));
    return all;
  }

  void wait_all_sent(Ref in) {
    repeat(k_, 1, members_.size(),
           [&](Scalar d) { wait_sent(k_, outgoing(in, members_.after(d)), sent_); });
  }

  Kernel& k_;
  Members members_;
  Shape part_;
  bool scatters_, sums_;
  Inbox inbox_;
  Sem sent_;
  Ref sum_;
};

}  // namespace

std::unique_ptr<Exchange> direct_exchange(Kernel& k, const CollectiveSpec& spec) {
  return std::make_unique<Direct>(k, spec);
}

}  // namespace gridless::blocks
