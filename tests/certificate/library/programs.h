// Random small programs for the comparison of the certificate with the explorer. A third or so is
// clean, a third races, a third hangs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gridless/ir/call.h"

namespace gridless::certificate {

struct Generated {
  ir::Program program;
  int cores = 1;
  std::vector<std::vector<std::byte>> inputs;  // by operand, cores one after another

  std::vector<std::span<const std::byte>> views() const { return {inputs.begin(), inputs.end()}; }
};

// Straight-line code per core, woven step by step along one execution: waits only for what is
// there, accesses mostly to what this execution has made safe. So it ends, and is nearly right;
// copies that share semaphores and signals that stand in for each other make the rest.
Generated woven(uint64_t seed);

// Patterns that people write (a stream through slots, an exchange, a ring with credits, barriers
// on one counter, a token passed on, scopes in loops), one or two in a program.
Generated patterned(uint64_t seed);

// Puts up to two of the mistakes of mutate.h in.
void spoil(Generated& g, uint64_t seed);

}  // namespace gridless::certificate
