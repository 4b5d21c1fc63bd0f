// Private to collectives/: one algorithm for one kind, and what several of them share.
#pragma once

#include <memory>
#include <span>

#include "gridless/blocks/activations.h"
#include "gridless/blocks/collectives/collective.h"

namespace gridless::blocks {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual Ref run(Ref in, Scalar turn) = 0;
  // x += run(in, turn), of an all-reduce.
  virtual void add_to(Ref x, Ref in, Scalar turn) { add_into(x, run(in, turn)); }
};

// `first` and then the dimensions of `rest`.
Shape stacked(int64_t first, const Shape& rest);
// `count` parts one after another.
Shape concatenated(int64_t count, const Shape& part);
// Part i of such.
inline Ref part_of(Ref parts, Scalar i, const Shape& part) {
  return parts.rows(i * part[0], part[0]);
}

// ((v[0] + v[1]) + v[2]) + ... , in the order given.
Vec sum_of(std::span<const Ref> values);

// Receive buffers that take turns, each with semaphores of its own: what belongs to one call never
// meets what belongs to the next.
class Inbox {
 public:
  Inbox(Kernel& k, Elem elem, const Shape& shape, int semaphores = 1);

  Ref box(Scalar turn) const { return boxes_.at(turn % 2); }
  Sem arrived(Scalar turn, Scalar i = 0) const { return semaphores_.at(turn % 2 * count_ + i); }

 private:
  Ref boxes_;  // [2, ...]
  Sems semaphores_;
  int count_;
};

// Waits until a remote copy of `source` (or of as many bytes) that used `sent` has left.
inline void wait_sent(Kernel& k, Ref source, Sem sent) { k.wait(source, source, sent); }

std::unique_ptr<Exchange> direct_exchange(Kernel& k, const CollectiveSpec& spec);
std::unique_ptr<Exchange> ring_exchange(Kernel& k, const CollectiveSpec& spec);
std::unique_ptr<Exchange> hierarchical_exchange(Kernel& k, const CollectiveSpec& spec);
std::unique_ptr<Exchange> broadcast_exchange(Kernel& k, const CollectiveSpec& spec);
// An all-reduce as a reduce-scatter and an all-gather by the algorithm of `spec`.
std::unique_ptr<Exchange> two_phase_all_reduce(Kernel& k, const CollectiveSpec& spec);

}  // namespace gridless::blocks
