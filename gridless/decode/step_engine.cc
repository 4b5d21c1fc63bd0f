#include "gridless/decode/step_engine.h"

#include <utility>

namespace gridless::decode {
namespace {

Error from_diagnostics(const Diagnostics& d) { return {Error::Kind::kMachine, to_string(d)}; }

class CpuStep : public StepEngine {
 public:
  explicit CpuStep(std::unique_ptr<cpu::Engine> engine) : engine_(std::move(engine)) {}

  Result<void> run() override {
    if (auto ok = engine_->run(); !ok) return std::unexpected(from_diagnostics(ok.error()));
    return {};
  }
  Result<std::vector<cpu::TraceEvent>> run_traced() override {
    auto events = engine_->run_traced();
    if (!events) return std::unexpected(from_diagnostics(events.error()));
    return std::move(*events);
  }

 private:
  std::unique_ptr<cpu::Engine> engine_;
};

class EmulatedStep : public StepEngine {
 public:
  EmulatedStep(emulate::Emulator emulator, std::span<const emulate::CoreMemory> memory)
      : emulator_(std::move(emulator)), memory_(memory) {}

  Result<void> run() override {
    const emulate::Report report = emulator_.run(memory_);
    if (!report.diagnostics.empty() || !report.finished)
      return std::unexpected(from_diagnostics(report.diagnostics));
    return {};
  }

 private:
  emulate::Emulator emulator_;
  std::span<const emulate::CoreMemory> memory_;
};

}  // namespace

Result<void> StepEngine::run_chain(int64_t, const OfLaunch&, const OfLaunch&) {
  return machine_error("this engine cannot chain launches");
}

Result<std::vector<cpu::TraceEvent>> StepEngine::run_traced() {
  return input_error("only the CPU engine traces its steps");
}

Result<std::unique_ptr<StepEngine>> cpu_step(const ir::Program& program,
                                             std::span<const emulate::CoreMemory> memory,
                                             const cpu::EngineOptions& options) {
  auto engine = cpu::Engine::create(program, memory, options);
  if (!engine) return std::unexpected(from_diagnostics(engine.error()));
  return std::make_unique<CpuStep>(std::move(*engine));
}

Result<std::unique_ptr<StepEngine>> emulated_step(const ir::Program& program,
                                                  std::span<const emulate::CoreMemory> memory) {
  auto emulator = emulate::Emulator::create(program.module, program.call);
  if (!emulator) return std::unexpected(from_diagnostics(emulator.error()));
  return std::make_unique<EmulatedStep>(std::move(*emulator), memory);
}

}  // namespace gridless::decode
