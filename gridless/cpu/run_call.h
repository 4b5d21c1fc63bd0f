// One launch of a kernel on the CPU engine, in memory of its own: the counterpart of
// emulate::run_call.
#pragma once

#include <span>

#include "gridless/cpu/engine.h"

namespace gridless::cpu {

// `inputs` holds per operand the bytes of all cores one after another. Errors: wrong number or size
// of inputs. A kernel that cannot be set up (a grid, for one) or that fails comes back as a report
// with diagnostics; `finished` is then true only if semaphores alone were left behind.
Result<emulate::CallResult> run_call(const ir::Program& program, int cores,
                                     std::span<const std::span<const std::byte>> inputs,
                                     const EngineOptions& options = {});

}  // namespace gridless::cpu
