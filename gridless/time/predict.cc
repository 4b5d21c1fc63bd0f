#include "gridless/time/predict.h"

#include <algorithm>
#include <iterator>

#include "gridless/emulate/scalars_only.h"
#include "gridless/ir/verifier.h"

namespace gridless::time {

Placement place(const chips::Slice& slice, int cores) {
  return {chips::Links(slice), slice.core_order(cores)};
}

std::expected<TimedKernel, Diagnostics> TimedKernel::create(const ir::Module& module, ir::Call call,
                                                            const IsFree& is_free) {
  Diagnostics wrong = ir::verify(module);
  if (has_errors(wrong)) return std::unexpected(std::move(wrong));
  auto kernel = emulate::make_kernel(module, std::move(call));
  if (!kernel) return std::unexpected(std::move(kernel.error()));
  TimedKernel out;
  out.kernel_ = std::move(*kernel);
  out.regions_ = cut_into_regions(out.kernel_, is_free);
  emulate::drop_vectors(out.kernel_);
  return out;
}

std::expected<Prediction, Diagnostics> TimedKernel::predict(
    const Placement& placement, std::span<const std::span<const std::byte>> operands,
    const PredictOptions& options) const {
  const size_t cores = placement.devices.size();
  std::vector<emulate::CoreMemory> memory(cores);
  for (size_t c = 0; c < cores; ++c)
    for (size_t k = 0; k < kernel_.call.operands.size(); ++k) {
      const auto bytes = static_cast<size_t>(emulate::tensor_bytes(kernel_.call.operands[k]));
      const auto given = k < operands.size() ? operands[k] : std::span<const std::byte>();
      memory[c].operands.push_back(given.size() == bytes * cores ? given.subspan(c * bytes, bytes)
                                                                 : given.first(0));
    }
  emulate::Options run;
  run.max_steps = options.max_steps;
  run.fill = emulate::Fill::kPositive;
  run.sources = options.sources;
  Simulation simulation(kernel_, regions_, memory, placement, options.parameters, run,
                        options.spans);
  Outcome outcome = simulation.run();
  if (!outcome.finished) return std::unexpected(std::move(outcome.diagnostics));

  Prediction p;
  p.warnings = regions_.warnings;
  std::ranges::move(outcome.diagnostics, std::back_inserter(p.warnings));
  p.steps = outcome.steps;
  for (const CoreOutcome& c : outcome.cores) p.kernel_ns = std::max(p.kernel_ns, c.end);
  p.ns = p.kernel_ns + options.parameters.launch_ns;
  const double share = 1.0 / static_cast<double>(cores);
  for (const CoreOutcome& c : outcome.cores) {
    Parts parts = c.parts;
    parts.imbalance = p.kernel_ns - c.end;
    parts.fixed = options.parameters.launch_ns;
    p.parts += parts.scaled(share);
    p.per_core_ns.push_back(c.end + options.parameters.launch_ns);
    p.hbm_bytes_most = std::max(p.hbm_bytes_most, c.hbm_bytes);
    p.hbm_bytes_mean += static_cast<double>(c.hbm_bytes) * share;
    p.messages += c.messages;
    p.message_bytes += c.message_bytes;
  }
  return p;
}

}  // namespace gridless::time
