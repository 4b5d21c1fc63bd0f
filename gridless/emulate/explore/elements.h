// Elements: which elements of which memory an access touches, one bit each. Slow and plain on
// purpose: the checker has footprints with a test of its own, and this is what it is compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "gridless/emulate/region.h"

namespace gridless::emulate {

class Elements {
 public:
  Elements() = default;
  Elements(const Buffer& buffer, const Region& region);

  bool overlaps(const Elements& other) const;
  // Memory is known by its address: aliased arguments share theirs.
  const std::byte* memory() const { return memory_; }

 private:
  const std::byte* memory_ = nullptr;
  int64_t first_ = 0;           // word of the first bit
  std::vector<uint64_t> bits_;  // from there on
};

}  // namespace gridless::emulate
