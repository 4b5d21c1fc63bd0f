#include "gridless/cpu/run_call.h"

#include <algorithm>

#include "gridless/ir/verifier.h"

namespace gridless::cpu {

Result<emulate::CallResult> run_call(const ir::Program& program, int cores,
                                     std::span<const std::span<const std::byte>> inputs,
                                     const EngineOptions& options) {
  TRY(emulate::LaunchMemory memory, emulate::launch_memory(program.call, cores, inputs));
  for (emulate::CoreMemory& core : memory.cores) {
    // The engine updates an operand in place where the emulator would copy it first.
    for (const auto& [result, operand] : program.call.aliases) {
      const std::span<std::byte> home = core.results[static_cast<size_t>(result)];
      std::ranges::copy(core.operands[static_cast<size_t>(operand)], home.begin());
      core.operands[static_cast<size_t>(operand)] = home;
    }
  }
  emulate::CallResult result;
  emulate::Report& report = result.report;
  report.diagnostics = ir::verify(program.module);
  if (has_errors(report.diagnostics)) return result;
  const auto engine = Engine::create(program, memory.cores, options);
  if (!engine) {
    report.diagnostics = engine.error();
    return result;
  }
  if (const auto ok = (*engine)->run(); !ok) report.diagnostics = ok.error();
  report.finished = std::ranges::all_of(report.diagnostics, [](const Diagnostic& d) {
    return d.kind == "semaphore_not_zero" || d.severity != Diagnostic::Severity::kError;
  });
  result.outputs = std::move(memory.outputs);
  return result;
}

}  // namespace gridless::cpu
