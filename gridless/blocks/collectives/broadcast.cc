// Broadcasts go down a tree: one level (direct), a chain (ring), or root, chips, siblings
// (hierarchical).
//
// Nothing comes back from below, so a sender would not know when a buffer is free again. Every
// member tells its parent when it begins a call, and a parent waits for that at the end of the same
// call: then the next turn's buffer, which was used by the call before, is free. So a signal costs
// nothing on the way of the data, but a parent leaves a call only once its children have begun it.
#include <algorithm>

#include "gridless/blocks/collectives/exchange.h"

namespace gridless::blocks {

namespace {

// A chain pipelines its message in this many pieces, where it has as many panels.
constexpr int64_t kMostPieces = 8;

class Broadcast : public Exchange {
 public:
  Broadcast(Kernel& k, const CollectiveSpec& s)
      : k_(k),
        members_(k, s.group),
        n_(s.group.size),
        root_(s.root),
        algorithm_(s.algorithm),
        panels_(s.part[0]),
        pieces_(s.algorithm == Algorithm::kRing && s.part.size() > 2
                    ? std::min(kMostPieces, panels_)
                    : 1),
        inbox_(k, s.elem, s.part, static_cast<int>(pieces_)),
        begun_(k.sems(2)),
        sent_(k.dma_sem()),
        done_(k.dma_sem()) {}

  Ref run(Ref in, Scalar turn) override {
    const Scalar me = members_.me();
    k_.if_(me == root_, [&] { k_.copy(in, inbox_.box(turn), done_).wait(); });
    switch (algorithm_) {
      case Algorithm::kDirect:
      case Algorithm::kScattered:
        direct(turn);
        break;
      case Algorithm::kRing:
        chain(turn);
        break;
      case Algorithm::kHierarchical:
        by_chips(turn);
        break;
    }
    return inbox_.box(turn);
  }

 private:
  void direct(Scalar turn) {
    k_.if_(
        members_.me() == root_,
        [&] {
          repeat(k_, 1, n_, [&](Scalar d) { pass_on((d + root_) % n_, turn); });
          wait_for_children(n_ - 1, turn);
        },
        [&] { receive(root_, turn); });
  }

  // Piece by piece, each as soon as it is here.
  void chain(Scalar turn) {
    const Scalar place = members_.after(n_ - root_), next = members_.after(1);
    const Scalar receives = place != 0, sends = place != n_ - 1;
    k_.if_(receives, [&] { tell(members_.before(1), turn); });
    for (int64_t i = 0; i < pieces_; ++i) {
      const Ref p = piece(i, turn);
      k_.if_(receives, [&] { k_.wait_received(p, inbox_.arrived(turn, i)); });
      k_.if_(sends, [&] { k_.copy_to(members_.core(next), p, p, sent_, inbox_.arrived(turn, i)); });
    }
    k_.if_(sends, [&] {
      for (int64_t i = 0; i < pieces_; ++i) wait_sent(k_, piece(i, turn), sent_);
      k_.wait(begun_.at(turn % 2));
    });
  }

  // The root sends to one member of each other pair, and that one to its sibling. The last member
  // of an odd group is a pair of its own.
  void by_chips(Scalar turn) {
    const int pairs = (n_ + 1) / 2, root_pair = root_ / 2, half = root_ % 2;
    const bool odd = n_ % 2 == 1;
    const auto has_sibling = [&](int i) { return !odd || i != n_ - 1; };
    const Scalar me = members_.me();
    const Scalar sibling = me + 1 - me % 2 * 2;
    k_.if_(
        me == root_,
        [&] {
          int children = 0;
          for (int d = 1; d < pairs; ++d, ++children) {
            const int pair = (root_pair + d) % pairs;
            pass_on(std::min(pair * 2 + half, n_ - 1), turn);
          }
          if (has_sibling(root_)) pass_on(root_ ^ 1, turn), ++children;
          wait_for_children(children, turn);
        },
        [&] {
          Scalar leads = me % 2 == half;
          if (odd) leads = leads || me == n_ - 1;
          k_.if_(
              leads,
              [&] {
                receive(root_, turn);
                const auto to_sibling = [&] {
                  pass_on(sibling, turn);
                  wait_for_children(1, turn);
                };
                if (odd) {
                  k_.if_(me != n_ - 1, to_sibling);
                } else {
                  to_sibling();
                }
              },
              [&] { receive(sibling, turn); });
        });
  }

  Ref piece(int64_t i, Scalar turn) const {
    const Ref box = inbox_.box(turn);
    if (pieces_ == 1) return box;
    const int64_t from = i * panels_ / pieces_, to = (i + 1) * panels_ / pieces_;
    return box.rows(from, to - from);
  }
  void tell(Scalar parent, Scalar turn) {
    k_.signal(begun_.at(turn % 2), 1, members_.core(parent));
  }
  void receive(Scalar parent, Scalar turn) {
    tell(parent, turn);
    k_.wait_received(inbox_.box(turn), inbox_.arrived(turn));
  }
  void pass_on(Scalar child, Scalar turn) {
    const Ref box = inbox_.box(turn);
    k_.copy_to(members_.core(child), box, box, sent_, inbox_.arrived(turn));
  }
  void wait_for_children(int count, Scalar turn) {
    repeat(k_, 0, count, [&](Scalar) { wait_sent(k_, inbox_.box(turn), sent_); });
    k_.wait(begun_.at(turn % 2), count);
  }

  Kernel& k_;
  Members members_;
  int n_, root_;
  Algorithm algorithm_;
  int64_t panels_, pieces_;
  Inbox inbox_;
  Sems begun_;
  Sem sent_, done_;
};

}  // namespace

std::unique_ptr<Exchange> broadcast_exchange(Kernel& k, const CollectiveSpec& spec) {
  return std::make_unique<Broadcast>(k, spec);
}

}  // namespace gridless::blocks
