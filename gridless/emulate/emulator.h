// The emulator: runs a kernel on N virtual cores, values only. Simple and slow; the oracle for the
// CPU engine, the blocks and the models.
//
// All cores run the same program, device_id being the core's number. A core runs until it waits for
// something that is not there, then the next one runs, round robin from core 0: the order is
// deterministic. A copy moves its data at the first wait that needs it. (Options::scheduler has
// other orders.) Scratch starts as poison (NaN, 0xdeadbeef), semaphores as zero. What goes wrong in
// the kernel is reported as Diagnostics of the kinds of the `check` command: out_of_bounds,
// deadlock, semaphore_not_zero, dma_in_flight_at_end, shape_mismatch, invalid_ir, and assertion,
// step_limit.
//
// One run sees one timing. That a kernel is right under every timing is for the checker to say.
#pragma once

#include <span>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"
#include "gridless/emulate/codec.h"
#include "gridless/emulate/kernel.h"

namespace gridless::emulate {

class Recorder;
class Scheduler;
class SourceValues;

struct Options {
  // Instructions of all cores together before the run is stopped with a step_limit Diagnostic.
  int64_t max_steps = 2'000'000'000;
  // Who decides what happens next (scheduler.h); null: cores take turns. Not with a recorder.
  Scheduler* scheduler = nullptr;

  // The rest is for the checker (check/check.h). With a recorder, deadlocks, copies in flight and
  // semaphores left over are for whoever reads its trace: the report has only what stopped the run.
  Recorder* recorder = nullptr;
  int64_t max_events = INT64_MAX;  // that it records, all cores together; then as max_steps
  // Garbage in memory that nobody wrote; that of one site may differ (kBeyond: what loads beyond a
  // ref's end give).
  Fill fill = Fill::kPoison, other_fill = Fill::kPoison;
  static constexpr int kNone = -1, kBeyond = -2;
  int other_site = kNone;
  std::vector<bool> not_given;  // operands whose data is made up; shorter: given

  // Values of named scalar sources, in place of what the program computes; null: none.
  const SourceValues* sources = nullptr;
  // Where nobody can go on, every waiting core is given what it lacks (check/wait_for.h).
  bool past_deadlock = false;
};

// The memory of one core's call, row-major as tensor_bytes() says. An operand that is aliased to
// a result may be given as the same memory; else it is copied into the result first.
struct CoreMemory {
  std::vector<std::span<const std::byte>> operands;
  std::vector<std::span<std::byte>> results;
};

struct Report {
  Diagnostics diagnostics;
  bool finished = false;             // every core returned; the results are complete
  int64_t steps = 0;                 // instructions executed
  std::vector<std::string> sources;  // named scalar sources that were read, a line each
};

class Emulator {
 public:
  // Verifies and flattens. `module` must outlive the emulator.
  // scalars_only: as scalars_only.h says; needs a recorder or a gate, takes empty operands for
  // those that are not given, and gives no results.
  static std::expected<Emulator, Diagnostics> create(const ir::Module& module, ir::Call call,
                                                     bool scalars_only = false);

  const ir::Call& call() const { return kernel_.call; }
  const Kernel& kernel() const { return kernel_; }

  // One launch on memory.size() cores. Sizes must match the call (CHECK). The emulator itself keeps
  // no state between launches; several threads may run one emulator on memory of their own.
  Report run(std::span<const CoreMemory> memory, const Options& options = {}) const;

 private:
  explicit Emulator(Kernel kernel) : kernel_(std::move(kernel)) {}
  Kernel kernel_;
};

// The memory of one launch: outputs of its own, zeroed, and operands that are parts of `inputs`,
// which holds per operand the bytes of all cores one after another and must outlive it. Errors:
// wrong number or size of inputs.
struct LaunchMemory {
  std::vector<std::vector<std::byte>> outputs;  // per result, cores one after another
  std::vector<CoreMemory> cores;
};
Result<LaunchMemory> launch_memory(const ir::Call& call, int cores,
                                   std::span<const std::span<const std::byte>> inputs);

struct CallResult {
  Report report;
  std::vector<std::vector<std::byte>> outputs;  // per result, cores one after another
};

// One launch of a kernel in memory of its own: `inputs` holds per operand the bytes of all cores
// one after another. Errors: wrong number or size of inputs. A kernel that cannot be set up at all
// comes back as a report with diagnostics and finished == false.
Result<CallResult> run_call(const ir::Module& module, const ir::Call& call, int cores,
                            std::span<const std::span<const std::byte>> inputs,
                            const Options& options = {});

}  // namespace gridless::emulate
