#include "gridless/blocks/collectives/group.h"

#include "gridless/base/check.h"
#include "gridless/lang/ops.h"

namespace gridless::blocks {

Members::Members(Kernel& k, CoreGroup group) : group_(group) {
  const int span = group.size * group.stride;
  GRIDLESS_CHECK(group.size >= 1 && group.stride >= 1 && k.cores() % span == 0,
                 "groups of {} cores with stride {} in a program for {}", group.size, group.stride,
                 k.cores());
  if (group.size == 1) return;
  const Scalar core = k.core();
  me_ = span == k.cores() && group.stride == 1 ? core : core / group.stride % group.size;
  first_ = span == k.cores() && group.stride == 1 ? Scalar(0) : core - me_ * group.stride;
}

Scalar Members::core(Scalar member) const { return first_ + member * group_.stride; }

Scalar Members::after(Scalar distance) const { return (me_ + distance) % group_.size; }

Scalar Members::before(Scalar distance) const {
  return (me_ + (group_.size - distance)) % group_.size;
}

void repeat(Kernel& k, int from, int to, const std::function<void(Scalar)>& body) {
  constexpr int kLongestUnrolled = 32;
  if (to - from > kLongestUnrolled) {
    k.loop(from, to, body);
  } else {
    for (int i = from; i < to; ++i) body(i);
  }
}

}  // namespace gridless::blocks
