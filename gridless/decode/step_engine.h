// What runs the launches of one step program in memory that was bound when it was made: the CPU
// engine, the emulator, or a TPU (tpu_host.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/cpu/engine.h"
#include "gridless/emulate/emulator.h"

namespace gridless::decode {

class StepEngine {
 public:
  virtual ~StepEngine() = default;

  // One launch. After it the candidates of all cores are in their memory.
  virtual Result<void> run() = 0;
  // One launch whose results nobody will look at. It may still be under way when this returns; what
  // goes wrong then is an error of a later launch.
  virtual Result<void> run_ahead() { return run(); }
  // `count` launches behind each other. `prepare(n)` leaves the tables of launch n in their memory;
  // from the second on, the tokens in them are not used: the likeliest ones of the launch before
  // are. `seen(n)` is called when all are over, with the candidates of launch n in their memory.
  // Logits are those of none.
  using OfLaunch = std::function<Result<void>(int64_t n)>;
  virtual Result<void> run_chain(int64_t count, const OfLaunch& prepare, const OfLaunch& seen);
  // False: the tokens go by the host anyway.
  virtual bool can_chain() const { return false; }
  // Brings the logits of the last run() to their memory, where that did not.
  virtual Result<void> fetch_logits() { return {}; }
  // One launch with the times of all its steps.
  virtual Result<std::vector<cpu::TraceEvent>> run_traced();
};

// Program and memory must outlive the engine.
Result<std::unique_ptr<StepEngine>> cpu_step(const ir::Program& program,
                                             std::span<const emulate::CoreMemory> memory,
                                             const cpu::EngineOptions& options);
Result<std::unique_ptr<StepEngine>> emulated_step(const ir::Program& program,
                                                  std::span<const emulate::CoreMemory> memory);

}  // namespace gridless::decode
