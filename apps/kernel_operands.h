// Operands for a kernel that is checked or timed: whatever decides its control flow and addresses.
#pragma once

#include <string>

#include "apps/exec_tensors.h"

namespace gridless::apps {

// The operands of all cores together are more than anybody wants made up: 256 MiB.
bool too_large_for_values(const ir::Call& call, int cores);

// From `file` if one is named (some or all of the operands); else a gallery kernel's own inputs, a
// model's row tables (step_tables.h), or the data.safetensors beside a kernel's file. What nobody
// gives comes back empty. `seed` chooses among a gallery kernel's or a model's sets, from 1.
Result<CallBytes> operands_of(const std::string& target, const std::string& file,
                              const ir::Call& call, int cores, int seed);

}  // namespace gridless::apps
