// The checker: one run of a kernel on N virtual cores, and from it a verdict for every timing - all
// interleavings of cores, delays and reorderings of copies and signals - for the given data.
//
// The verdict is a proof (`certificate`) when the run ended, nothing is wrong, and no address,
// branch, amount or device id depends on what vectors hold or on operands that nobody gave. It
// rests on assumptions about the chip that no program can check; assumptions() lists them, and
// docs/checking.md gives them in full with the argument.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/emulate/check/rules.h"
#include "gridless/emulate/check/wait_for.h"
#include "gridless/emulate/emulator.h"

namespace gridless::emulate {

struct CheckOptions {
  // Instructions of all cores together, per run, before it is stopped with a step_limit finding.
  int64_t max_steps = 200'000'000;
  // Events of all cores together (an event takes some 400 bytes) before the same. A run that was
  // stopped is not looked at for races and the like.
  int64_t max_events = 12'000'000;
  // Without what vectors hold (scalars_only.h): for programs at their real size. Operands that are
  // not given take no memory.
  bool scalars_only = false;
  // Values of named scalar sources; null: none, or in a run with values its own.
  const SourceValues* sources = nullptr;
};

struct CheckReport {
  std::vector<Finding> findings;
  bool certificate = false;
  std::vector<std::string> notes;  // what keeps it from being a proof, and what it rests on
  int64_t events = 0;              // of one launch, all cores
  int cores = 0;
  double seconds = 0;
  int64_t vmem_peak_bytes = 0, smem_peak_bytes = 0, semaphores = 0;
  int passes = 0;         // of the fixpoint of orders
  WaitForGraph wait_for;  // of a deadlock, else empty

  bool clean() const;  // no finding is an error
  Diagnostics diagnostics() const;
};

// What any verdict assumes of the chip and of the caller, a line each.
std::span<const std::string_view> assumptions();

// `inputs` holds per operand the bytes of all cores one after another; an empty span is an operand
// that nobody gave: floats get small pseudo-random numbers and integers zeros, and whatever control
// flow depends on them is no proof. Errors: wrong number or size of inputs. Everything that is
// wrong with the kernel is a finding.
Result<CheckReport> check(const ir::Module& module, const ir::Call& call, int cores,
                          std::span<const std::span<const std::byte>> inputs,
                          const CheckOptions& options = {});

}  // namespace gridless::emulate
