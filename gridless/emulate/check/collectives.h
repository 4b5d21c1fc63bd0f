// The barrier semaphore and the collective_id that names it.
#pragma once

#include "gridless/emulate/check/rules.h"

namespace gridless::emulate {

// Findings of kind collective_mismatch: the barrier semaphore without a collective_id; an id that
// nothing uses (a warning); and, where the barrier semaphore hangs or is left over, cores that do
// not take part in the same barriers.
std::vector<Finding> check_collectives(const Trace& trace);

}  // namespace gridless::emulate
