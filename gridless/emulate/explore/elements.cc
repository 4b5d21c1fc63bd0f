#include "gridless/emulate/explore/elements.h"

#include <algorithm>

namespace gridless::emulate {

Elements::Elements(const Buffer& buffer, const Region& region) : memory_(buffer.data.data()) {
  int64_t low = INT64_MAX, high = -1;
  region.for_each_run([&](int64_t first, int64_t count, int64_t stride) {
    low = std::min(low, first);
    high = std::max(high, first + (count - 1) * stride);
  });
  if (high < 0) return;
  first_ = low / 64;
  bits_.resize(static_cast<size_t>(high / 64 - first_ + 1));
  region.for_each_run([&](int64_t first, int64_t count, int64_t stride) {
    for (int64_t n = 0; n < count; ++n) {
      const int64_t k = first + n * stride;
      bits_[static_cast<size_t>(k / 64 - first_)] |= uint64_t{1} << (k % 64);
    }
  });
}

bool Elements::overlaps(const Elements& other) const {
  if (memory_ != other.memory_) return false;
  const int64_t begin = std::max(first_, other.first_);
  const int64_t end = std::min(first_ + static_cast<int64_t>(bits_.size()),
                               other.first_ + static_cast<int64_t>(other.bits_.size()));
  for (int64_t w = begin; w < end; ++w)
    if (bits_[static_cast<size_t>(w - first_)] & other.bits_[static_cast<size_t>(w - other.first_)])
      return true;
  return false;
}

}  // namespace gridless::emulate
