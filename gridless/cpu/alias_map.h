// AliasMap: copies that were not made. A whole-part copy from a read-only operand to VMEM is
// remembered instead, and reads of the target are sent to the source.
#pragma once

#include <map>
#include <vector>

#include "gridless/emulate/view.h"

namespace gridless::cpu {

class AliasMap {
 public:
  struct Alias {
    emulate::View source, target;  // both contiguous, of one shape and element
  };
  enum class Hit { kNone, kInside, kPartly };

  // Remembers target = source. Earlier aliases that overlap the target must have been taken out.
  void add(const emulate::View& source, const emulate::View& target);
  // Where the data of `v` is: kInside fills `out`. kPartly: some of it is in an alias, some is not.
  Hit translate(const emulate::View& v, emulate::View& out) const;
  // Removes and returns the aliases that overlap `v`, or all.
  std::vector<Alias> take_overlapping(const emulate::View& v);
  std::vector<Alias> take_all();
  // True when the (contiguous) view contains the target of the alias.
  static bool covers(const emulate::View& v, const Alias& alias);

 private:
  // By the first element of the target, per buffer.
  std::map<const emulate::Buffer*, std::map<int64_t, Alias>> aliases_;
};

}  // namespace gridless::cpu
