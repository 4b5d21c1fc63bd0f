// Which algorithm a collective should use: the one that is predicted to be fastest on TPU v7.
//
// The answer comes from a table (choice.inc) that bench/collective_choice_bench writes by timing
// every algorithm with the time model (docs/time.md), so blocks need not know that model. It knows
// groups of all cores of the smallest slice; others are taken to behave alike. Another algorithm
// is another order of summation: where results must not depend on the size of a message, choose
// once.
#pragma once

#include "gridless/blocks/collectives/collective.h"

namespace gridless::blocks {

// `cores`: members of the group. `part_bytes`: of one part (collective.h).
Algorithm choose(CollectiveKind kind, int cores, int64_t part_bytes);

// Of the all-reduces that add in one order, so that the size of a message does not change the bits:
// the direct and the scattered one.
Algorithm choose_in_order(int cores, int64_t part_bytes);
// An all-reduce of f32 parts over all cores of the kernel, by that one.
Collective sums_in_order(Kernel& k, const Shape& part);

}  // namespace gridless::blocks
