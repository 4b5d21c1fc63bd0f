// TARGET of the commands that take a kernel: where the module and its call come from.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "gridless/base/error.h"
#include "gridless/ir/call.h"

namespace gridless::apps {

// kernel:NAME[?key=value&...], a kernel of the gallery; or a path to a kernel in a file, as
// ir/read_program.h takes it: a Mosaic body (bytecode or text), where `call_file` gives its
// operands and results (empty: the call.json beside it), or StableHLO text. `cores` (0: as the
// kernel says) applies to gallery kernels that have such an option. Errors name the file and, for
// text that does not parse, line and column.
Result<ir::Program> load_kernel(const std::string& target, const std::string& call_file,
                                int cores = 0);

// Options --call and --cores, which say more of a kernel than TARGET does.
void add_kernel_options(CLI::App* command, std::string& call_file, int& cores);

}  // namespace gridless::apps
