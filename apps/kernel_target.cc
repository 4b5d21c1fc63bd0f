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

}  // namespace gridless::apps
