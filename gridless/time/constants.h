// Masks that are known when a kernel is compiled: comparisons of lane numbers with constants and
// what is made of them. The compiler folds them, and with them the selections that they decide.
#pragma once

#include <optional>
#include <unordered_map>

#include "gridless/emulate/value.h"
#include "gridless/ir/module.h"

namespace gridless::time {

class Constants {
 public:
  // Of everything in `function`.
  explicit Constants(const ir::Op& function);

  // An integer vector or mask whose elements are all known.
  bool known(const ir::Value* v) const { return values_.contains(v); }
  // What a known mask says for the k-th register of a vector of `type` with its shape: true or
  // false where all elements agree.
  std::optional<bool> decides(const ir::Value* mask, ir::Type type, size_t k) const;

 private:
  std::unordered_map<const ir::Value*, emulate::RtValue> values_;
};

}  // namespace gridless::time
