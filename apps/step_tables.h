// Row tables for a step program that nobody gave any: what `check model:NAME` runs on.
#pragma once

#include "apps/exec_tensors.h"
#include "apps/target.h"

namespace gridless::apps {

// The operands rows, pages and keep of the launch contract (docs/launch_contract.md), as the keys
// rows, sequences, use and context of the target say; the other operands are empty.
// Seed 1: every row active, all sequences at `context`, pages in order. Higher seeds: 2 one row at
// position 0; 3 positions around the ends of pages; from 4 on random positions, pages and inactive
// rows.
Result<CallBytes> step_tables(const Target& target, const ir::Call& call, int cores, int seed);

}  // namespace gridless::apps
