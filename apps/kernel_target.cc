#include "apps/kernel_target.h"

#include "apps/target.h"
#include "gridless/ir/read_program.h"

namespace gridless::apps {

Result<ir::Program> load_kernel(const std::string& target, const std::string& call_file,
                                int cores) {
  if (target.starts_with("kernel:")) {
    if (!call_file.empty())
      return input_error("{} says its own call: --call does not apply", target);
    TRY(const Target parsed, parse_target(target));
    return build_kernel(parsed, cores);
  }
  auto program = ir::read_program(target, call_file);
  if (!program) return input_error("{}", to_string(program.error()));
  return std::move(*program);
}

void add_kernel_options(CLI::App* command, std::string& call_file, int& cores) {
  command
      ->add_option("--call", call_file,
                   "Operands and results of the body; default: the call.json beside it")
      ->option_text("FILE");
  command->add_option("--cores", cores, "Virtual cores; default: as many as the call has devices")
      ->check(CLI::Range(1, ir::kMostCores))
      ->option_text("N");
}

}  // namespace gridless::apps
