// Where the time of a core goes, nanoseconds. The parts add up to the core's whole time.
#pragma once

#include "gridless/time/fluid.h"

namespace gridless::time {

struct Parts {
  Ns hbm = 0;        // waiting for copies of its own: from and to HBM, or inside the core
  Ns mxu = 0;        // matrix units: weights going in, sums coming out
  Ns vector = 0;     // other vector instructions
  Ns scalar = 0;     // scalar instructions alone: addresses, starts of copies, branches
  Ns exchange = 0;   // waiting for a message or signal of another core that is on its way
  Ns peer_wait = 0;  // waiting for one that the other core has not sent yet
  Ns imbalance = 0;  // done, while others still work
  Ns fixed = 0;      // the launch

  Ns total() const {
    return hbm + mxu + vector + scalar + exchange + peer_wait + imbalance + fixed;
  }
  Parts& operator+=(const Parts& o) {
    hbm += o.hbm, mxu += o.mxu, vector += o.vector, scalar += o.scalar;
    exchange += o.exchange, peer_wait += o.peer_wait, imbalance += o.imbalance, fixed += o.fixed;
    return *this;
  }
  Parts scaled(double f) const {
    return {hbm * f,      mxu * f,       vector * f,    scalar * f,
            exchange * f, peer_wait * f, imbalance * f, fixed * f};
  }
};

}  // namespace gridless::time
