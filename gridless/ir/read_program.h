// The one door for kernels in files.
#pragma once

#include <expected>
#include <filesystem>
#include <string>

#include "gridless/base/diagnostic.h"
#include "gridless/ir/call.h"

namespace gridless::ir {

// `path` is
//   - a Mosaic body, as bytecode or text; `call_file` gives its operands and results, when empty
//   the
//     call.json beside it;
//   - or StableHLO text with one tpu_custom_call, which says its own call.
// What the file is, is seen by its content, not by its name.
std::expected<Program, Diagnostics> read_program(const std::filesystem::path& path,
                                                 const std::filesystem::path& call_file = {});

// The module of such a file alone, for those that need no call.
std::expected<Module, Diagnostics> read_module(const std::filesystem::path& path);

}  // namespace gridless::ir
