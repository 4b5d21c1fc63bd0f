#include "apps/kernel_operands.h"

#include <filesystem>

#include "apps/model_target.h"
#include "apps/step_tables.h"
#include "apps/target.h"
#include "gridless/emulate/kernel.h"
#include "kernels/gallery.h"

namespace gridless::apps {

namespace {
constexpr int64_t kMostMadeUpBytes = int64_t{1} << 28;
}  // namespace

bool too_large_for_values(const ir::Call& call, int cores) {
  int64_t bytes = 0;
  for (const auto* args : {&call.operands, &call.results})
    for (const ir::CallArg& a : *args) bytes += emulate::tensor_bytes(a);
  return bytes > kMostMadeUpBytes / cores;
}

Result<CallBytes> operands_of(const std::string& target_text, const std::string& file,
                              const ir::Call& call, int cores, int seed) {
  namespace fs = std::filesystem;
  if (!file.empty()) return read_operands(file, call, cores, /*some=*/true);
  CallBytes out(call.operands.size());
  TRY(const Target target, parse_target(target_text));
  if (is_model_target(target)) return step_tables(target, call, cores, seed);
  if (!target_text.starts_with("kernel:")) {
    const fs::path beside = fs::path(target_text).parent_path() / "data.safetensors";
    if (fs::exists(beside)) return read_operands(beside.string(), call, cores, /*some=*/true);
    return out;
  }
  if (too_large_for_values(call, cores)) return out;
  TRY(const kernels::Lesson* lesson, kernels::find_lesson(target.name));
  TRY(const kernels::Options options, lesson_options(*lesson, target, cores));
  for (const auto& core : lesson->inputs(options, static_cast<uint64_t>(seed)))
    for (size_t k = 0; k < out.size(); ++k) {
      const std::vector<std::byte> bytes = core[k].bytes();
      out[k].insert(out[k].end(), bytes.begin(), bytes.end());
    }
  return out;
}

}  // namespace gridless::apps
