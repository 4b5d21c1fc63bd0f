// Does garbage matter? Loads of memory that nobody wrote, or beyond a ref's end, are common and
// harmless (masked rows, unused slots): an error is only what can be told from outside. So the run
// is repeated with other garbage, and the events and results are compared.
#pragma once

#include "gridless/emulate/check/inputs.h"
#include "gridless/emulate/check/rules.h"
#include "gridless/emulate/recorder.h"

namespace gridless::emulate {

// One run under a recorder, with what can be seen of it from outside.
struct GarbageRun {
  std::unique_ptr<Recorder> recorder;
  Report report;
  LaunchMemory memory;
};
GarbageRun run_recorded(const Emulator& emulator, int cores, const CheckInputs& inputs,
                        Options options);

// Findings for the suspects of `first`, a run with `options`, whose garbage is Fill::kPositive.
// `harmless` counts suspects that no run could tell.
std::vector<Finding> judge_suspects(const Emulator& emulator, int cores, const CheckInputs& inputs,
                                    const GarbageRun& first, const Options& options, int& harmless);

}  // namespace gridless::emulate
