#include "gridless/blocks/collectives/by_hosts.h"

#include <functional>
#include <numeric>

#include "gridless/base/integers.h"
#include "gridless/blocks/collectives/choose.h"
#include "gridless/blocks/collectives/exchange.h"

namespace gridless::blocks {

namespace {

constexpr int kHost = 8;
// The largest part that goes whole: beyond it a phase costs less than the bytes (docs/time.md).
constexpr int64_t kWholeBytes = int64_t{16} << 10;

bool two_levels(const Kernel& k) { return k.cores() > kHost && k.cores() % kHost == 0; }

CoreGroup host() { return {.size = kHost}; }
CoreGroup across(const Kernel& k) { return {.size = k.cores() / kHost, .stride = kHost}; }

}  // namespace

SumByHosts::SumByHosts(Kernel& k, const Shape& part) : k_(k), panels_(part[0]) {
  if (!two_levels(k)) {
    all_.emplace(sums_in_order(k, part));
    return;
  }
  const bool whole =
      std::accumulate(part.begin(), part.end(), int64_t{4}, std::multiplies()) <= kWholeBytes;
  Shape piece = part;
  if (!whole) piece[0] = ceil_div(panels_, kHost);
  const auto make = [&](CollectiveKind kind, CoreGroup group) {
    return Collective(k, {.kind = kind, .group = group, .part = piece});
  };
  if (whole) {
    within_.emplace(make(CollectiveKind::kAllReduce, host()));
    hosts_.emplace(make(CollectiveKind::kAllReduce, across(k)));
    return;
  }
  scatter_.emplace(make(CollectiveKind::kReduceScatter, host()));
  hosts_.emplace(make(CollectiveKind::kAllReduce, across(k)));
  gather_.emplace(make(CollectiveKind::kAllGather, host()));
  // What is behind the last panel is summed too and read by nobody.
  padded_ = k.vmem(Elem::kF32, concatenated(kHost, piece));
  padded_.store(zeros(k, Elem::kF32, padded_.shape()));
}

void SumByHosts::add_sum(Scalar turn, Ref y, Ref x) {
  if (all_) {
    all_->add_sum(turn, y, x);
    return;
  }
  if (within_) {
    hosts_->add_sum(turn, within_->run(y.rows(0, panels_), turn), x);
    return;
  }
  padded_.rows(0, panels_).store(y.rows(0, panels_).load());
  const Ref sum = hosts_->run(scatter_->run(padded_, turn), turn);
  add_into(x, gather_->run(sum, turn));
}

GatherByHosts::GatherByHosts(Kernel& k, const Shape& part) {
  const bool two = two_levels(k);
  const auto make = [&](CoreGroup group, const Shape& of) {
    return Collective(k, {.kind = CollectiveKind::kAllGather, .group = group, .part = of});
  };
  within_.emplace(make(two ? host() : CoreGroup{.size = k.cores()}, part));
  if (two) hosts_.emplace(make(across(k), concatenated(kHost, part)));
}

Ref GatherByHosts::run(Ref in, Scalar turn) {
  const Ref mine = within_->run(in, turn);
  return hosts_ ? hosts_->run(mine, turn) : mine;
}

}  // namespace gridless::blocks
