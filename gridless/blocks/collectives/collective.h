// Collectives: the exchanges of a group of cores, inside the kernel. One interface, five kinds,
// four algorithms; docs/collectives.md has the messages, bytes, memory and semaphores of each.
//
//   Collective sums(k, {.kind = CollectiveKind::kAllReduce, .group = {k.cores()}, .part = shape});
//   k.barrier_all();                         // once, before the first call on any core
//   k.loop(0, layers, [&](Scalar layer) {
//     sums.add_sum(layer, partial, x);       // x += the sum over all cores of `partial`
//   });
//
// With n members and parts of shape [p, ...]; several parts stand one after another in the first
// dimension, so activations of n panels are n parts of one panel each:
//
//   kind            in           result on member i
//   all-gather      [p, ...]     [n p, ...]  part j is member j's input
//   reduce-scatter  [n p, ...]   [p, ...]    the sum over j of part i of member j's input
//   all-reduce      [p, ...]     [p, ...]    the sum over j of member j's input
//   all-to-all      [n p, ...]   [n p, ...]  part j is part i of member j's input
//   broadcast       [p, ...]     [p, ...]    the root's input (the others' is not read)
//
// Sums add in an order that depends on the algorithm and on which member owns a panel, never on
// timing or on the number of rows; all members of a group get the same bits.
#pragma once

#include <memory>
#include <string_view>

#include "gridless/blocks/collectives/group.h"

namespace gridless::blocks {

enum class CollectiveKind { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kBroadcast };
enum class Algorithm {
  kDirect,        // everybody sends to everybody: one message time, most bytes on the links
  kRing,          // neighbour to neighbour: fewest bytes on each link, n - 1 message times
  kHierarchical,  // members 2i and 2i + 1 (the cores of a chip) act as one towards the others
  // All-reduce only, else as kDirect: a direct reduce-scatter of pieces and a direct all-gather.
  // Two message times and 2 / n of the bytes, with the bits of kDirect.
  kScattered,
};

std::string_view name_of(CollectiveKind kind);
std::string_view name_of(Algorithm algorithm);

struct CollectiveSpec {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  Algorithm algorithm = Algorithm::kDirect;
  CoreGroup group;
  Elem elem = Elem::kF32;  // sums: f32
  Shape part;              // in VMEM
  int root = 0;            // the member that broadcasts
};

class Exchange;

class Collective {
 public:
  // Takes receive buffers and semaphores from the scope around, which must hold on every core for
  // as long as any core may send: make it before scopes that end before the first call.
  Collective(Kernel& k, CollectiveSpec spec, Where w = Where::current());
  ~Collective();
  Collective(Collective&&) noexcept;

  // The exchange. `turn` numbers the calls of this object, on all cores alike: only its parity
  // counts, and it must change from each call to the next (a loop counter, or 0 and 1 for two calls
  // in the body of a loop). So no barrier is needed between calls. `in` may be written again when
  // run() is over; the result lies in the block's memory (or is `in`, of a group of one) and stays
  // until the next call of this object.
  Ref run(Ref in, Scalar turn);

  // All-reduce only: x += the sum of y[0 .. p), in one go where the algorithm allows. y may have
  // more panels than x.
  void add_sum(Scalar turn, Ref y, Ref x);

 private:
  CollectiveSpec spec_;
  std::unique_ptr<Exchange> exchange_;  // null: a group of one
};

}  // namespace gridless::blocks
