#include "apps/kernel_target.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "apps/common.h"
#include "gridless/ir/text.h"
#include "gridless/tpu/compile_kernel.h"
#include "kernels/gallery.h"

namespace gridless::apps {

namespace {

// NAME[?key=value&key=value...] of a gallery kernel.
Result<ir::Program> build_lesson(const std::string& target) {
  const size_t question = target.find('?');
  std::map<std::string, std::string> given;
  for (size_t at = question; at != std::string::npos && at + 1 < target.size();) {
    const size_t end = std::min(target.find('&', at + 1), target.size());
    const std::string pair = target.substr(at + 1, end - at - 1);
    const size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0)
      return input_error("kernel:{}: \"{}\" is not key=value", target, pair);
    given[pair.substr(0, equals)] = pair.substr(equals + 1);
    at = end == target.size() ? std::string::npos : end;
  }
  TRY(const kernels::Lesson* lesson, kernels::find_lesson(target.substr(0, question)));
  TRY(const kernels::Options options, lesson->with(given));
  kernels::Built built = lesson->build(options);
  if (!built) return input_error("{}", to_string(built.error()));
  return std::move(*built);
}

}  // namespace

Result<ir::Program> load_kernel(const std::string& target, const std::string& call_file) {
  namespace fs = std::filesystem;
  constexpr std::string_view kGallery = "kernel:";
  if (target.starts_with(kGallery)) {
    if (!call_file.empty())
      return input_error("{} says its own call: --call does not apply", target);
    return build_lesson(target.substr(kGallery.size()));
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
