// Members 2i and 2i + 1 are a pair: the two cores of a chip, whose link is an order of magnitude
// faster than those between chips. Between chips a member deals with the members of its own half
// only, (i, h) with (j, h), and the pair passes on between its halves what the other one needs:
// after the links for a gather, before them for a sum or an all-to-all. So each message between
// chips serves both cores of a chip, and crosses once. In a group of odd size the last member has
// no sibling: it deals with each other member directly.
//
// Two turns are enough, as everybody receives from everybody it sends to (see direct.cc).
#include <vector>

#include "gridless/blocks/collectives/exchange.h"

namespace gridless::blocks {

namespace {

// What the three kinds share: who is who, and semaphores.
class Hierarchical : public Exchange {
 public:
  Hierarchical(Kernel& k, const CollectiveSpec& s)
      : k_(k),
        members_(k, s.group),
        part_(s.part),
        n_(s.group.size),
        pairs_(n_ / 2),
        odd_(n_ % 2 == 1),
        last_(n_ - 1),
        me_(members_.me()),
        pair_(me_ / 2),
        half_(me_ % 2),
        sibling_(me_ + 1 - half_ * 2),
        sent_(k.dma_sem()),
        sent_to_sibling_(k.dma_sem()),
        done_(k.dma_sem()) {}

  Ref run(Ref in, Scalar turn) override {
    const auto paired = [&] { run_paired(in, turn); };
    if (odd_) {
      k_.if_(me_ == last_, [&] { run_alone(in, turn); }, paired);
    } else {
      paired();
    }
    return result(turn);
  }

 protected:
  // For a member of a pair, and for the last one of an odd group.
  virtual void run_paired(Ref in, Scalar turn) = 0;
  virtual void run_alone(Ref in, Scalar turn) = 0;
  virtual Ref result(Scalar turn) const = 0;

  Ref at(Ref parts, Scalar i) const { return part_of(parts, i, part_); }
  // The member of my half in the pair d places after mine, d from 1.
  Scalar peer(Scalar d) const { return peer_pair(d) * 2 + half_; }
  Scalar peer_pair(Scalar d) const { return (pair_ + d) % pairs_; }
  void for_peers(const std::function<void(Scalar)>& body) { repeat(k_, 1, pairs_, body); }
  void for_pairs(const std::function<void(Scalar)>& body) { repeat(k_, 0, pairs_, body); }
  void for_others(const std::function<void(Scalar)>& body) { repeat(k_, 0, n_ - 1, body); }
  void send(Scalar member, Ref from, Ref to, Sem arrived) {
    k_.copy_to(members_.core(member), from, to, sent_, arrived);
  }
  void send_to_sibling(Ref from, Ref to, Sem arrived) {
    k_.copy_to(members_.core(sibling_), from, to, sent_to_sibling_, arrived);
  }

  Kernel& k_;
  Members members_;
  Shape part_;
  int n_, pairs_;
  bool odd_;
  int last_;
  Scalar me_, pair_, half_, sibling_;
  Sem sent_, sent_to_sibling_, done_;
};

enum Stage { kFromPeers, kFromSibling, kStages };  // the semaphores of an inbox

class AllGather : public Hierarchical {
 public:
  AllGather(Kernel& k, const CollectiveSpec& s)
      : Hierarchical(k, s), inbox_(k, s.elem, concatenated(n_, s.part), kStages) {}

 private:
  void run_paired(Ref in, Scalar turn) override {
    const Ref box = inbox_.box(turn), mine = at(box, me_);
    const Sem from_peers = inbox_.arrived(turn, kFromPeers);
    const Sem from_sibling = inbox_.arrived(turn, kFromSibling);
    for_peers([&](Scalar d) { send(peer(d), in, mine, from_peers); });
    if (odd_) send(last_, in, mine, from_peers);
    send_to_sibling(in, mine, from_sibling);
    k_.copy(in, mine, done_);
    for_peers([&](Scalar d) { k_.wait_received(at(box, peer(d)), from_peers); });
    if (odd_) k_.wait_received(at(box, last_), from_peers);
    for_peers([&](Scalar d) {
      const Ref part = at(box, peer(d));
      send_to_sibling(part, part, from_sibling);
    });
    for_pairs(
        [&](Scalar p) { k_.wait_received(at(box, p * 2 + (Scalar(1) - half_)), from_sibling); });
    k_.wait(in, mine, done_);
    for_pairs([&](Scalar) { wait_sent(k_, in, sent_to_sibling_); });
    for_peers([&](Scalar) { wait_sent(k_, in, sent_); });
    if (odd_) wait_sent(k_, in, sent_);
  }

  void run_alone(Ref in, Scalar turn) override {
    const Ref box = inbox_.box(turn), mine = at(box, me_);
    const Sem from_peers = inbox_.arrived(turn, kFromPeers);
    for_others([&](Scalar i) { send(i, in, mine, from_peers); });
    k_.copy(in, mine, done_).wait();
    for_others([&](Scalar i) { k_.wait_received(at(box, i), from_peers); });
    for_others([&](Scalar) { wait_sent(k_, in, sent_); });
  }

  Ref result(Scalar turn) const override { return inbox_.box(turn); }

  Inbox inbox_;
};

// The sum of a part is over pairs first: ((a0 + a1) + (a2 + a3)) + ..., and the last member of an
// odd group at the end.
class ReduceScatter : public Hierarchical {
 public:
  ReduceScatter(Kernel& k, const CollectiveSpec& s)
      : Hierarchical(k, s),
        from_sibling_(k, s.elem, concatenated(pairs_, s.part)),
        from_peers_(k, s.elem, concatenated(odd_ ? n_ : pairs_, s.part)),
        sum_(k.vmem(s.elem, s.part)) {}

 private:
  void run_paired(Ref in, Scalar turn) override {
    const Ref pair_sums = from_sibling_.box(turn), box = from_peers_.box(turn);
    const Sem sibling_arrived = from_sibling_.arrived(turn);
    const Sem peers_arrived = from_peers_.arrived(turn);
    for_pairs([&](Scalar p) {
      send_to_sibling(at(in, p * 2 + (Scalar(1) - half_)), at(pair_sums, p), sibling_arrived);
    });
    if (odd_) send(last_, at(in, last_), at(box, me_), peers_arrived);
    for_pairs([&](Scalar p) { k_.wait_received(at(pair_sums, p), sibling_arrived); });
    const auto pair_sum = [&](Scalar p) {
      return at(pair_sums, p).load() + at(in, p * 2 + half_).load();
    };
    for_peers([&](Scalar d) {
      const Ref part = at(pair_sums, peer_pair(d));
      part.store(pair_sum(peer_pair(d)));
      send(peer(d), part, at(box, pair_), peers_arrived);
    });
    at(box, pair_).store(pair_sum(pair_));
    for_peers([&](Scalar d) { k_.wait_received(at(box, peer_pair(d)), peers_arrived); });
    if (odd_) k_.wait_received(at(box, pairs_), peers_arrived);
    std::vector<Ref> terms;
    for (int i = 0; i < pairs_ + (odd_ ? 1 : 0); ++i) terms.push_back(at(box, i));
    sum_.store(sum_of(terms));
    for_pairs([&](Scalar p) { wait_sent(k_, at(in, p), sent_to_sibling_); });
    for_peers([&](Scalar d) { wait_sent(k_, at(in, d), sent_); });
    if (odd_) wait_sent(k_, at(in, last_), sent_);
  }

  void run_alone(Ref in, Scalar turn) override {
    const Ref box = from_peers_.box(turn);
    const Sem arrived = from_peers_.arrived(turn);
    for_others([&](Scalar i) { send(i, at(in, i), at(box, pairs_), arrived); });
    for_others([&](Scalar i) { k_.wait_received(at(box, i), arrived); });
    Vec sum;
    for (int p = 0; p < pairs_; ++p) {
      const Vec pair = at(box, p * 2).load() + at(box, p * 2 + 1).load();
      sum = sum ? sum + pair : pair;
    }
    sum_.store(sum + at(in, me_).load());
    for_others([&](Scalar i) { wait_sent(k_, at(in, i), sent_); });
  }

  Ref result(Scalar) const override { return sum_; }

  Inbox from_sibling_, from_peers_;
  Ref sum_;
};

class AllToAll : public Hierarchical {
 public:
  AllToAll(Kernel& k, const CollectiveSpec& s)
      : Hierarchical(k, s),
        staging_(k, s.elem, concatenated(int64_t{2} * pairs_, s.part)),
        inbox_(k, s.elem, concatenated(n_, s.part)),
        sent_alone_(k.dma_sem()) {}

 private:
  // Both parts from pair `from` (or for it).
  Ref both(Ref parts, Scalar from) const { return parts.rows(from * (2 * part_[0]), 2 * part_[0]); }

  void run_paired(Ref in, Scalar turn) override {
    const Ref staging = staging_.box(turn), box = inbox_.box(turn);
    const Sem staged = staging_.arrived(turn), arrived = inbox_.arrived(turn);
    // What is for my half of any pair is gathered here, what is for the other at the sibling's.
    for_pairs([&](Scalar p) {
      const Ref place = at(staging, p * 2 + half_);
      send_to_sibling(at(in, p * 2 + (Scalar(1) - half_)), place, staged);
      k_.copy(at(in, p * 2 + half_), place, done_);
    });
    if (odd_) {
      k_.copy_to(members_.core(last_), at(in, last_), at(box, me_), sent_alone_, arrived);
    }
    for_pairs([&](Scalar p) {
      k_.wait_received(at(staging, p * 2 + (Scalar(1) - half_)), staged);
      k_.wait_received(at(staging, p * 2 + half_), done_);
    });
    for_peers(
        [&](Scalar d) { send(peer(d), both(staging, peer_pair(d)), both(box, pair_), arrived); });
    k_.copy(both(staging, pair_), both(box, pair_), done_).wait();
    for_peers([&](Scalar d) { k_.wait_received(both(box, peer_pair(d)), arrived); });
    if (odd_) k_.wait_received(at(box, last_), arrived);
    for_pairs([&](Scalar p) { wait_sent(k_, at(in, p), sent_to_sibling_); });
    for_peers([&](Scalar d) { wait_sent(k_, both(staging, peer_pair(d)), sent_); });
    if (odd_) wait_sent(k_, at(in, last_), sent_alone_);
  }

  void run_alone(Ref in, Scalar turn) override {
    const Ref box = inbox_.box(turn), mine = at(box, me_);
    const Sem arrived = inbox_.arrived(turn);
    for_others([&](Scalar i) { send(i, at(in, i), mine, arrived); });
    k_.copy(at(in, me_), mine, done_).wait();
    for_others([&](Scalar i) { k_.wait_received(at(box, i), arrived); });
    for_others([&](Scalar i) { wait_sent(k_, at(in, i), sent_); });
  }

  Ref result(Scalar turn) const override { return inbox_.box(turn); }

  Inbox staging_, inbox_;
  Sem sent_alone_;
};

}  // namespace

std::unique_ptr<Exchange> hierarchical_exchange(Kernel& k, const CollectiveSpec& spec) {
  if (spec.kind == CollectiveKind::kAllGather) return std::make_unique<AllGather>(k, spec);
  if (spec.kind == CollectiveKind::kAllToAll) return std::make_unique<AllToAll>(k, spec);
  return std::make_unique<ReduceScatter>(k, spec);
}

}  // namespace gridless::blocks
