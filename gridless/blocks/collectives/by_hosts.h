// Exchanges of all cores in two levels: the 8 cores of a host (4 chips, which are neighbours), then
// the cores of one place in all hosts. Each level is a direct collective of its own, so a core
// sends to 7 and to one less than the hosts instead of to all others, for one phase or two more.
// With up to 8 cores, or other than whole hosts of them, there is one level.
#pragma once

#include <optional>

#include "gridless/blocks/collectives/collective.h"

namespace gridless::blocks {

// x += the sum over all cores of y: within hosts, then over them, in the same order for every size.
// Small parts go whole, in two phases; of larger ones each core of a host sums a piece, which takes
// a third phase and an eighth of the bytes.
class SumByHosts {
 public:
  // part: f32 [n, ...]. Memory and rules as for Collective.
  SumByHosts(Kernel& k, const Shape& part);

  // y may have more panels than x.
  void add_sum(Scalar turn, Ref y, Ref x);

 private:
  Kernel& k_;
  int64_t panels_;
  std::optional<Collective> all_;  // one level
  std::optional<Collective> within_, scatter_, hosts_, gather_;
  Ref padded_;  // f32 [8 pieces, ...]; `within_` needs none
};

// All parts in the order of the cores: in [p, ...], result [cores p, ...].
class GatherByHosts {
 public:
  GatherByHosts(Kernel& k, const Shape& part);

  Ref run(Ref in, Scalar turn);

 private:
  std::optional<Collective> within_, hosts_;
};

}  // namespace gridless::blocks
