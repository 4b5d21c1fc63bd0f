// Rings: member i sends to i + 1 only and receives from i - 1. Each step has a semaphore of its
// own, as copies may overtake each other.
//
// Why two turns are enough for the first two: the last thing that a core receives in call e + 1
// went through every other member, which therefore had begun that call and was done with call e.
// The all-to-all has credits instead.
#include <algorithm>

#include "gridless/blocks/collectives/exchange.h"

namespace gridless::blocks {

namespace {

// The part that is sent in a step is the one that came in the step before.
class RingAllGather : public Exchange {
 public:
  RingAllGather(Kernel& k, const CollectiveSpec& s)
      : k_(k),
        members_(k, s.group),
        part_(s.part),
        inbox_(k, s.elem, concatenated(s.group.size, s.part), s.group.size - 1),
        sent_(k.dma_sem()),
        done_(k.dma_sem()) {}

  Ref run(Ref in, Scalar turn) override {
    const int n = members_.size();
    const Ref box = inbox_.box(turn);
    const Scalar right = members_.core(members_.after(1));
    // What is sent in step s, and received in step s - 1.
    const auto piece = [&](Scalar s) { return part_of(box, members_.before(s), part_); };
    k_.copy_to(right, in, piece(0), sent_, inbox_.arrived(turn, 0));
    k_.copy(in, piece(0), done_);
    repeat(k_, 1, n - 1, [&](Scalar s) {
      k_.wait_received(piece(s), inbox_.arrived(turn, s - 1));
      k_.copy_to(right, piece(s), piece(s), sent_, inbox_.arrived(turn, s));
    });
    k_.wait_received(piece(n - 1), inbox_.arrived(turn, n - 2));
    k_.wait(in, piece(0), done_);
    repeat(k_, 0, n - 1, [&](Scalar s) { wait_sent(k_, piece(s), sent_); });
    return box;
  }

 private:
  Kernel& k_;
  Members members_;
  Shape part_;
  Inbox inbox_;
  Sem sent_, done_;
};

// The sum of part i starts at member i + 1, grows by one term per step and ends at member i:
// ((in[i+1] + in[i+2]) + ...) + in[i].
class RingReduceScatter : public Exchange {
 public:
  RingReduceScatter(Kernel& k, const CollectiveSpec& s)
      : k_(k),
        members_(k, s.group),
        part_(s.part),
        inbox_(k, s.elem, stacked(s.group.size - 1, s.part), s.group.size - 1),
        sent_(k.dma_sem()) {}

  Ref run(Ref in, Scalar turn) override {
    const int n = members_.size();
    const Ref box = inbox_.box(turn);
    const Scalar right = members_.core(members_.after(1));
    // Adds this member's term to what came in step s.
    const auto add_term = [&](Scalar s) {
      k_.wait_received(box.at(s), inbox_.arrived(turn, s));
      const Ref term = part_of(in, members_.before(s + 2), part_);
      box.at(s).store(box.at(s).load() + term.load());
    };
    k_.copy_to(right, part_of(in, members_.before(1), part_), box.at(0), sent_,
               inbox_.arrived(turn, 0));
    repeat(k_, 1, n - 1, [&](Scalar s) {
      add_term(s - 1);
      k_.copy_to(right, box.at(s - 1), box.at(s), sent_, inbox_.arrived(turn, s));
    });
    add_term(n - 2);
    repeat(k_, 0, n - 1, [&](Scalar s) { wait_sent(k_, box.at(s), sent_); });
    return box.at(n - 2);
  }

 private:
  Kernel& k_;
  Members members_;
  Shape part_;
  Inbox inbox_;
  Sem sent_;
};

// What a member sends travels in a convoy: after s steps the parts of member me - s for me, me + 1,
// ... are here, of which the first stays and the others go on. Two slots for convoys take turns
// from step to step; a credit says that the right neighbour is done with one. All credits are back
// at the end of a call, so `turn` is not needed.
class RingAllToAll : public Exchange {
 public:
  RingAllToAll(Kernel& k, const CollectiveSpec& s)
      : k_(k),
        members_(k, s.group),
        part_(s.part),
        result_(k.vmem(s.elem, concatenated(s.group.size, s.part))),
        transit_(k, s.elem, concatenated(s.group.size - 1, s.part)),
        credits_(k.sems(2)),
        sent_(k.dma_sem()),
        passed_on_(k.dma_sem()),
        done_(k.dma_sem()) {}

  Ref run(Ref in, Scalar) override {
    const int n = members_.size();
    const Scalar right = members_.core(members_.after(1)), left = members_.core(members_.before(1));
    const int64_t p = part_[0];
    const auto convoy = [&](int s) { return transit_.box(s); };  // n - s parts
    const auto keep = [&](Ref part, Scalar from) {
      k_.copy(part, part_of(result_, from, part_), done_).wait();
    };
    repeat(k_, 1, n, [&](Scalar d) {
      k_.copy_to(right, part_of(in, members_.after(d), part_), part_of(convoy(1), d - 1, part_),
                 sent_, transit_.arrived(1));
    });
    keep(part_of(in, members_.me(), part_), members_.me());
    for (int s = 1; s < n; ++s) {
      if (s == 1) {
        repeat(k_, 1, n, [&](Scalar d) {
          k_.wait_received(part_of(convoy(1), d - 1, part_), transit_.arrived(1));
        });
      } else {
        k_.wait_received(convoy(s).rows(0, (n - s) * p), transit_.arrived(s));
      }
      keep(convoy(s).rows(0, p), members_.before(s));
      if (s < n - 1) {
        const int64_t rest = (n - s - 1) * p;
        if (s > 1) k_.wait(credits_.at((s + 1) % 2));
        k_.copy_to(right, convoy(s).rows(p, rest), convoy(s + 1).rows(0, rest), passed_on_,
                   transit_.arrived(s + 1))
            .wait_sent();
      }
      k_.signal(credits_.at(s % 2), 1, left);
    }
    for (int s = std::max(1, n - 2); s < n; ++s) k_.wait(credits_.at(s % 2));
    repeat(k_, 1, n, [&](Scalar d) { wait_sent(k_, part_of(in, d, part_), sent_); });
    return result_;
  }

 private:
  Kernel& k_;
  Members members_;
  Shape part_;
  Ref result_;
  Inbox transit_;
  Sems credits_;
  Sem sent_, passed_on_, done_;
};

}  // namespace

std::unique_ptr<Exchange> ring_exchange(Kernel& k, const CollectiveSpec& spec) {
  if (spec.kind == CollectiveKind::kAllGather) return std::make_unique<RingAllGather>(k, spec);
  if (spec.kind == CollectiveKind::kAllToAll) return std::make_unique<RingAllToAll>(k, spec);
  return std::make_unique<RingReduceScatter>(k, spec);
}

}  // namespace gridless::blocks
