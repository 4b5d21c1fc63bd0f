// gridless inspect: what a file or directory holds, by what it is.
#include "apps/inspect.h"

#include <memory>
#include <string>

#include "apps/commands.h"
#include "apps/common.h"
#include "gridless/models/registry.h"

namespace gridless::apps {
namespace {

Result<void> inspect(const std::string& target, const InspectOptions& options) {
  if (is_kernel_file(target)) return inspect_kernel(target, options);
  TRY(const std::filesystem::path path, models::resolve_weights(target));
  return inspect_checkpoint(path.string(), options);
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "inspect",
      "Show what a checkpoint holds (formats, sizes, config, tokenizer), or a kernel (arguments, "
      "memories, copies, ops)");
  struct Arguments {
    std::string path;
    InspectOptions options;
  };
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option(
          "PATH", arguments->path,
          "A checkpoint directory, a .gguf or .safetensors file, a model's name, or a kernel: "
          "a Mosaic body (.mlirbc, .mlir) or StableHLO text with one tpu_custom_call")
      ->required();
  command->add_flag("--tensors", arguments->options.every_tensor,
                    "List every tensor, not one line per kind");
  command->add_flag("--json", arguments->options.json, "Print one JSON object instead of tables");
  set_examples(command, {"gridless inspect smollm2", "gridless inspect DIRECTORY --json",
                         "gridless inspect kernel.mlirbc"});
  command->callback([arguments, &exit_code] {
    const Result<void> done = inspect(arguments->path, arguments->options);
    exit_code = done ? kDone : report(done.error());
  });
}

}  // namespace gridless::apps
