// The cores that take part in a collective. A program's cores are split into groups of one size,
// all of which do the same at the same time: `stride` 1 makes runs of neighbours (0 1 2 3 | 4 5 6
// 7), a larger one every stride-th core (size 4, stride 2: 0 2 4 6 | 1 3 5 7). So with T
// tensor-parallel cores within each of E expert groups, {T} sums within an expert group and {E, T}
// exchanges between the cores that have one place in them.
#pragma once

#include <functional>

#include "gridless/lang/kernel.h"

namespace gridless::blocks {

using namespace gridless::lang;  // NOLINT: blocks are written in the language

struct CoreGroup {
  int size = 1;
  int stride = 1;
};

// A group within a kernel: which member this core is, and which core a member is.
class Members {
 public:
  // The cores of the kernel must be a multiple of size * stride.
  Members(Kernel& k, CoreGroup group);

  int size() const { return group_.size; }
  Scalar me() const { return me_; }      // 0 .. size - 1
  Scalar core(Scalar member) const;      // of this core's group
  Scalar after(Scalar distance) const;   // the member so many places after me, around the ring
  Scalar before(Scalar distance) const;  // and before me; distance <= size

 private:
  CoreGroup group_;
  Scalar first_, me_;
};

// body(i) for from <= i < to: unrolled while that is short, else a loop of the program.
void repeat(Kernel& k, int from, int to, const std::function<void(Scalar)>& body);

}  // namespace gridless::blocks
