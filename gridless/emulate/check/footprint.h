// Footprints: the sets of buffer elements that accesses touch, numbered so that equal ones are one,
// with an exact overlap test.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gridless/emulate/region.h"

namespace gridless::emulate {

class Footprints {
 public:
  // The number of `region` of a buffer of this shape. Equal regions of equal shapes get one number,
  // so compare only footprints of one buffer.
  int32_t intern(const Region& region, const Shape& buffer_shape);
  bool overlap(int32_t a, int32_t b) const;
  // First and last element.
  int64_t first(int32_t f) const { return all_[static_cast<size_t>(f)].first; }
  int64_t last(int32_t f) const { return all_[static_cast<size_t>(f)].last; }
  bool empty(int32_t f) const { return all_[static_cast<size_t>(f)].region.empty; }
  // "rows 0 to 7 of dimension 0, ..." in the coordinates of the buffer.
  std::string str(int32_t f) const;
  size_t size() const { return all_.size(); }

  // Elements lo, lo + step, ... of one dimension of the buffer.
  struct Range {
    int64_t lo = 0, count = 1, step = 1;
  };
  // By dimension of the buffer; null: no such box.
  const std::vector<Range>* box(int32_t f) const {
    const Footprint& print = all_[static_cast<size_t>(f)];
    return print.is_box ? &print.box : nullptr;
  }

 private:
  struct Footprint {
    Region region;
    int64_t first = 0, last = 0;
    bool is_box = false;
    std::vector<Range> box;  // by dimension of the buffer
  };
  static bool make_box(const Region& region, const Shape& shape, std::vector<Range>& box);
  static bool ranges_meet(const Range& a, const Range& b);

  struct Hash {
    size_t operator()(const std::vector<int64_t>& key) const;
  };
  std::vector<Footprint> all_;
  std::unordered_map<std::vector<int64_t>, int32_t, Hash> numbers_;
  std::vector<int64_t> key_;  // reused
};

}  // namespace gridless::emulate
