// Which vectors hold the same in every lane: what a reduction over lanes, a broadcast or a constant
// leaves, and what arithmetic makes of such. The compiler keeps them so, through loops too, and
// needs no permutation of lanes to spread them over more.
#pragma once

#include <unordered_set>

#include "gridless/ir/module.h"

namespace gridless::time {

class LanesAlike {
 public:
  // Of everything in `function`.
  explicit LanesAlike(const ir::Op& function);
  // True of scalars too.
  bool of(const ir::Value* v) const { return !differ_.contains(v); }

 private:
  bool all(const std::vector<ir::Value*>& values, size_t from = 0) const;
  bool result(const ir::Op& op) const;
  bool settle(const ir::Op& op);  // false: nothing new
  bool mark(const ir::Value* v, bool alike);
  bool pass_on(const std::vector<ir::Value*>& from, size_t first, const ir::Block& to,
               size_t first_argument);

  std::unordered_set<const ir::Value*> differ_;
};

}  // namespace gridless::time
