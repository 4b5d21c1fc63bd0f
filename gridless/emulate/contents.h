// What the checker knows of the elements of a buffer (Buffer::contents), read and written by
// region.
#pragma once

#include "gridless/emulate/region.h"

namespace gridless::emulate {

struct Found {
  bool some_garbage = false, all_garbage = false;
  Origin origin = Origin::kKnown;  // of what is not garbage
};
// What a store of a scalar of that origin leaves.
Content content_of(Origin origin);

Found inspect(const Buffer& buffer, const Region& region);

// mask: one entry per element of the region in row-major order, or empty for all.
void mark(Buffer& buffer, const Region& region, Content content,
          std::span<const int32_t> mask = {});

// Whether the region is written depends on an operand that nobody gave: what is there is kNotGiven,
// unless it is garbage.
void spoil(Buffer& buffer, const Region& region);

// dst takes what src has, element by element; views of one shape.
void copy_contents(const View& src, const View& dst);

}  // namespace gridless::emulate
