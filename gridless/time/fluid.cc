#include "gridless/time/fluid.h"

#include <algorithm>
#include <limits>

#include "gridless/base/check.h"

namespace gridless::time {

int Fluid::add_resource(double rate) {
  resources_.push_back({.rate = rate, .flows = {}});
  is_touched_.push_back(false);
  return static_cast<int>(resources_.size()) - 1;
}

void Fluid::touch(int resource) {
  if (is_touched_[static_cast<size_t>(resource)]) return;
  is_touched_[static_cast<size_t>(resource)] = true;
  touched_.push_back(resource);
}

Fluid::Flow Fluid::start(Ns now, double bytes, std::vector<int> route, double most) {
  if (now > now_) settle();  // rates up to now, before this flow counts
  now_ = std::max(now_, now);
  Flow flow = static_cast<Flow>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  State& s = flows_[static_cast<size_t>(flow)];
  s.left = bytes;
  s.rate = 0;
  s.most = most;
  s.since = now_;
  s.route = std::move(route);
  s.active = true;
  for (const int r : s.route) {
    resources_[static_cast<size_t>(r)].flows.push_back(flow);
    touch(r);
  }
  if (s.route.empty()) update(flow, now_);
  ++under_way_;
  return flow;
}

// At one time many flows come and go together: rates are computed once, when time moves on.
void Fluid::settle() {
  for (size_t k = 0; k < touched_.size(); ++k) {
    const int r = touched_[k];
    is_touched_[static_cast<size_t>(r)] = false;
    for (const Flow f : resources_[static_cast<size_t>(r)].flows) update(f, now_);
  }
  touched_.clear();
}

void Fluid::update(Flow flow, Ns now) {
  State& s = flows_[static_cast<size_t>(flow)];
  double rate = s.most;
  for (const int r : s.route) {
    const Resource& resource = resources_[static_cast<size_t>(r)];
    rate = std::min(rate, resource.rate / static_cast<double>(resource.flows.size()));
  }
  if (rate == s.rate) return;
  s.left = std::max(0.0, s.left - (now - s.since) * s.rate);
  s.since = now;
  s.rate = rate;
  ends_.push({now + s.left / rate, order_++, flow, ++s.version});
}

Ns Fluid::next() {
  settle();
  while (!ends_.empty()) {
    const State& s = flows_[static_cast<size_t>(ends_.top().flow)];
    if (s.active && s.version == ends_.top().version) return ends_.top().at;
    ends_.pop();
  }
  return std::numeric_limits<Ns>::infinity();
}

Fluid::Flow Fluid::finish() {
  const Ns at = next();
  GRIDLESS_CHECK(!ends_.empty(), "no flow is under way");
  const Flow flow = ends_.top().flow;
  ends_.pop();
  now_ = std::max(now_, at);
  State& s = flows_[static_cast<size_t>(flow)];
  for (const int r : s.route) {
    auto& on = resources_[static_cast<size_t>(r)].flows;
    on.erase(std::ranges::find(on, flow));
    touch(r);
  }
  s.active = false;
  ++s.version;
  free_.push_back(flow);
  --under_way_;
  return flow;
}

}  // namespace gridless::time
