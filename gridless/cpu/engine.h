// The CPU engine: runs a program on N virtual cores with T worker threads, fast.
//
// The operands stay where the caller has them and are bound when the engine is made: a caller
// changes tables and state in place between launches. Virtual core c belongs to worker c % T; a
// worker whose cores wait goes on with a core of a worker that is not running, then spins briefly,
// then parks. The program's own semaphores are the only synchronisation inside a launch.
//
// Thread contract: run() by one thread at a time. Deterministic: results do not depend on the
// number of workers or on timing (for programs without races).
#pragma once

#include <expected>
#include <memory>
#include <span>
#include <vector>

#include "gridless/base/cpu_features.h"
#include "gridless/base/diagnostic.h"
#include "gridless/emulate/emulator.h"
#include "gridless/ir/call.h"

namespace gridless::cpu {

struct EngineOptions {
  int threads = 1;           // workers; more than cores are not used
  Isa isa = active_isa();    // hand kernels of this level
  bool hand_kernels = true;  // false runs the bodies of composites: slow, for comparisons
  // Steps that unrolled loops may produce for one core; loops beyond stay loops.
  int64_t max_unrolled_steps = 1'000'000;
};

struct EngineStats {
  int64_t hand_kernels = 0;  // steps of one launch of core 0, by kind
  int64_t copies = 0;
  int64_t views = 0;  // copies that were replaced by a view of the operand
  int64_t generic = 0;
  int64_t steps = 0;
  double lower_seconds = 0;  // of all cores
};

// One step of one core in a traced launch.
struct TraceEvent {
  int core = 0;
  const ir::Op* op = nullptr;        // where it came from; a composite names itself
  int64_t start_ns = 0, end_ns = 0;  // since the launch; a wait ends when it is met
};

class Engine {
 public:
  // `program` and the memory must outlive the engine. Memory as for the emulator: one entry per
  // core; operands that are shared by several cores may be given as the same memory. An operand
  // that is aliased to a result must be the same memory as the result.
  static std::expected<std::unique_ptr<Engine>, Diagnostics> create(
      const ir::Program& program, std::span<const emulate::CoreMemory> memory,
      const EngineOptions& options = {});
  ~Engine();

  // One launch. Diagnostics: deadlock, out_of_bounds, semaphore_not_zero; the engine is then
  // unusable.
  std::expected<void, Diagnostics> run();

  // The same with the times of all steps, cores one after another. Slower: two clock reads a step.
  std::expected<std::vector<TraceEvent>, Diagnostics> run_traced();

  const EngineStats& stats() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gridless::cpu
