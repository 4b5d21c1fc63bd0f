#include "gridless/emulate/emulator.h"

#include "gridless/emulate/launch.h"
#include "gridless/emulate/scalars_only.h"
#include "gridless/emulate/scheduler.h"
#include "gridless/ir/verifier.h"

namespace gridless::emulate {
std::expected<Emulator, Diagnostics> Emulator::create(const ir::Module& module, ir::Call call,
                                                      bool scalars_only) {
  Diagnostics wrong = ir::verify(module);
  if (has_errors(wrong)) return std::unexpected(std::move(wrong));
  auto kernel = make_kernel(module, std::move(call));
  if (!kernel) return std::unexpected(std::move(kernel.error()));
  if (scalars_only) drop_vectors(*kernel);
  return Emulator(std::move(*kernel));
}

Report Emulator::run(std::span<const CoreMemory> memory, const Options& options) const {
  GRIDLESS_CHECK(!memory.empty());
  if (options.scheduler) return run_steps(kernel_, memory, options, *options.scheduler);
  return Launch(kernel_, memory, options).run();
}

Result<LaunchMemory> launch_memory(const ir::Call& call, int cores,
                                   std::span<const std::span<const std::byte>> inputs) {
  if (inputs.size() != call.operands.size())
    return input_error("the call has {} operands, {} inputs are given", call.operands.size(),
                       inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int64_t expected = tensor_bytes(call.operands[k]) * cores;
    if (static_cast<int64_t>(inputs[k].size()) != expected)
      return input_error("input {} has {} bytes; {} cores of shape {} need {}", k, inputs[k].size(),
                         cores, ir::shape_str(call.operands[k].type.shape()), expected);
  }
  LaunchMemory result;
  for (const ir::CallArg& spec : call.results)
    result.outputs.emplace_back(static_cast<size_t>(tensor_bytes(spec) * cores));
  std::vector<CoreMemory>& memory = result.cores;
  memory.resize(static_cast<size_t>(cores));
  for (size_t c = 0; c < memory.size(); ++c) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      const auto bytes = static_cast<size_t>(tensor_bytes(call.operands[k]));
      memory[c].operands.push_back(inputs[k].subspan(c * bytes, bytes));
    }
    for (size_t k = 0; k < call.results.size(); ++k) {
      const auto bytes = static_cast<size_t>(tensor_bytes(call.results[k]));
      memory[c].results.push_back(std::span(result.outputs[k]).subspan(c * bytes, bytes));
    }
  }
  return result;
}

Result<CallResult> run_call(const ir::Module& module, const ir::Call& call, int cores,
                            std::span<const std::span<const std::byte>> inputs,
                            const Options& options) {
  TRY(LaunchMemory memory, launch_memory(call, cores, inputs));
  CallResult result;
  result.outputs = std::move(memory.outputs);
  auto emulator = Emulator::create(module, call);
  if (emulator) {
    result.report = emulator->run(memory.cores, options);
  } else {
    result.report.diagnostics = std::move(emulator.error());
  }
  return result;
}

}  // namespace gridless::emulate
