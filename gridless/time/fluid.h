// Fluid: what is under way shares what it passes through.
//
// A flow is an amount of bytes on a route of resources (a memory, a link). Each resource divides
// its rate evenly among the flows on it, and a flow moves as fast as the slowest of its resources
// lets it: what it leaves unused elsewhere is not given to others (as measured on rings, where the
// critical copy slows down with every further one). A flow may pass one resource twice: it then
// takes two shares of it.
//
// Time only moves when advance_to() says so. Rates change when flows come and go, for the flows
// that share a resource with them.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace gridless::time {

// Nanoseconds since the start.
using Ns = double;

class Fluid {
 public:
  using Flow = int;

  // Bytes per nanosecond.
  int add_resource(double rate);

  // `most`: the flow's own limit in bytes per nanosecond. It takes its number from start() until
  // it is over.
  Flow start(Ns now, double bytes, std::vector<int> route, double most);

  // When the next flow is over; infinity when none is under way.
  Ns next();
  // The flow that is over then. Call when time has come to next().
  Flow finish();

  int under_way() const { return under_way_; }

 private:
  struct State {
    double left = 0, rate = 0, most = 0;
    Ns since = 0;  // `left` and `rate` hold from here on
    std::vector<int> route;
    int64_t version = 0;  // of its end in the queue; a freed flow's never comes back
    bool active = false;
  };
  struct Resource {
    double rate = 0;
    std::vector<Flow> flows;  // one entry per share
  };
  struct End {
    Ns at;
    int64_t order;  // ends at one time come in the order in which they were computed
    Flow flow;
    int64_t version;
    bool operator>(const End& o) const { return at != o.at ? at > o.at : order > o.order; }
  };

  void settle();  // computes the rates of flows whose resources changed
  void touch(int resource);
  void update(Flow flow, Ns now);

  std::vector<Resource> resources_;
  std::vector<State> flows_;
  std::vector<Flow> free_;
  std::vector<int> touched_;
  std::vector<bool> is_touched_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Ns now_ = 0;
  int64_t order_ = 0;
  int under_way_ = 0;
};

}  // namespace gridless::time
