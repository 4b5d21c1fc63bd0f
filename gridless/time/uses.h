// Where the values of a flattened program are used.
#pragma once

#include <unordered_map>

#include "gridless/emulate/program.h"

namespace gridless::time {

class Uses {
 public:
  Uses(const emulate::Program& program, const ir::Op& function);

  // Whether anything outside of instructions [first, last) reads the value.
  bool outside(const ir::Value* v, size_t first, size_t last) const;

 private:
  struct Range {
    size_t least = 0, most = 0;
    bool carried = false;  // by loops and branches
  };
  std::unordered_map<const ir::Value*, Range> uses_;
};

}  // namespace gridless::time
