// How long a kernel takes on a TPU that nobody has at hand: a launch of it, on any slice.
//
// TimedKernel costs a kernel's code once; predict() then runs it on a model of the machine, with
// given operands (page tables, positions: whatever control flow and addresses depend on) and a set
// of constants. Its vectors have no values, so a terabyte of weights costs nothing.
// docs/time.md says what is modelled and what is not, and how far the result can be trusted.
#pragma once

#include <expected>
#include <span>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"
#include "gridless/chips/links.h"
#include "gridless/chips/time_parameters.h"
#include "gridless/emulate/emulator.h"
#include "gridless/time/parts.h"
#include "gridless/time/regions.h"
#include "gridless/time/simulation.h"

namespace gridless::time {

struct PredictOptions {
  chips::TimeParameters parameters;
  int64_t max_steps = 2'000'000'000;  // instructions of all cores before the run is given up
  // Values of named scalar sources; null: what the program computes, which without vectors is zero.
  const emulate::SourceValues* sources = nullptr;
  std::vector<Span>* spans = nullptr;
};

struct Prediction {
  Ns ns = 0;                    // of a launch, until the last core is done
  Ns kernel_ns = 0;             // the same without the launch itself
  Parts parts;                  // mean over the cores; adds up to `ns`
  std::vector<Ns> per_core_ns;  // launch included
  int64_t hbm_bytes_most = 0;   // read and written by the core that moves most
  double hbm_bytes_mean = 0;
  int64_t messages = 0, message_bytes = 0;  // between cores, all cores together
  Diagnostics warnings;                     // scalars that nobody knows, costs that are guessed
  int64_t steps = 0;
};

class TimedKernel {
 public:
  // `module` must outlive it. `is_free`: null, or which operations are taken to cost nothing.
  static std::expected<TimedKernel, Diagnostics> create(const ir::Module& module, ir::Call call,
                                                        const IsFree& is_free = nullptr);

  const emulate::Kernel& kernel() const { return kernel_; }
  const Regions& regions() const { return regions_; }

  // One launch on the cores of the placement. `operands`: per operand the bytes of all cores one
  // after another, or empty where nobody gave it. Diagnostics: deadlocks and what else stops a run.
  std::expected<Prediction, Diagnostics> predict(
      const Placement& placement, std::span<const std::span<const std::byte>> operands,
      const PredictOptions& options) const;

 private:
  emulate::Kernel kernel_;
  Regions regions_;
};

// Cores 0 .. n-1 of a program on a slice, neighbours beside each other.
Placement place(const chips::Slice& slice, int cores);

}  // namespace gridless::time
