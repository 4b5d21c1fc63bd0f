#include "apps/kernel_target.h"

#include <filesystem>

#include "apps/common.h"
#include "apps/target.h"
#include "gridless/ir/text.h"
#include "gridless/tpu/compile_kernel.h"

namespace gridless::apps {

Result<ir::Program> load_kernel(const std::string& target, const std::string& call_file,
                                int cores) {
  namespace fs = std::filesystem;
  if (target.starts_with("kernel:")) {
    if (!call_file.empty())
      return input_error("{} says its own call: --call does not apply", target);
    TRY(const Target parsed, parse_target(target));
    return build_kernel(parsed, cores);
  }
  TRY(const std::string text, read_text(target));
  auto module = ir::parse(text, target);
  if (!module) return input_error("{}", to_string(module.error()));
  const fs::path call_path =
      call_file.empty() ? fs::path(target).parent_path() / "call.json" : fs::path(call_file);
  if (call_file.empty() && !fs::exists(call_path)) {
    return input_error(
        "{} is the body of a kernel: name the file with its operands and results, --call call.json",
        target);
  }
  TRY(const std::string call_text, read_text(call_path));
  const auto spec = tpu::parse_call_json(call_text);
  if (!spec) return std::unexpected(spec.error().in(call_path.string()));
  auto call = tpu::ir_call(*spec);
  if (!call) return std::unexpected(call.error().in(call_path.string()));
  return ir::Program{std::move(*module), std::move(*call)};
}

}  // namespace gridless::apps
