// The links of a slice: how far its devices are from each other, and which links a message takes.
//
// A chip has a link in each direction of x, y and z to its neighbour, if it has one; the links of a
// side close to a ring where the slice wraps. A message goes along x first, then y, then z (the
// order in which published measurements of the torus add up); round a ring it takes the shorter
// way, and upwards when both are equally long. The two cores of a chip are joined by a die-to-die
// link of their own.
#pragma once

#include <vector>

#include "gridless/chips/slice.h"

namespace gridless::chips {

// A link in one direction, by number. The numbers of a slice are dense: [0, Links::count()).
using Link = int;

class Links {
 public:
  // `wraps`: whether the sides close to rings; a slice's own Slice::wraps() unless one asks
  // "what if". A side of one or two chips has no further links for it.
  Links(const Slice& slice, bool wraps);
  explicit Links(const Slice& slice) : Links(slice, slice.wraps()) {}

  const Slice& slice() const { return slice_; }
  bool wraps() const { return wraps_; }
  int count() const { return slice_.chips() * 6 + slice_.cores(); }

  // Chips between two devices: 0 on one chip.
  int hops(int from, int to) const;
  // The links from one device to another, in order. The other core of the chip: its die-to-die
  // link. The device itself: none.
  std::vector<Link> route(int from, int to) const;
  bool is_die_to_die(Link link) const { return link >= slice_.chips() * 6; }
  // The longest distance of two chips of the slice.
  int diameter() const;

 private:
  // Steps along a side from a to b: negative means downwards.
  int steps(int side, int a, int b) const;
  Slice slice_;
  bool wraps_;
};

}  // namespace gridless::chips
