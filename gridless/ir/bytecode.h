// MLIR bytecode: what JAX puts into a tpu_custom_call and what its exported kernels are stored as.
//
// Version 0 of the format, the one that JAX writes so that every libtpu can read it. Modules of
// stable_mosaic 1 to 18, and plain ones, are brought to the one form in memory as text is
// (text.h, versions.h). Format: mlir.llvm.org/docs/BytecodeFormat, and the encodings of the builtin
// dialect's attributes and types (bytecode_reader.h lists them).
#pragma once

#include <expected>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/ir/location.h"
#include "gridless/ir/module.h"

namespace gridless::ir {

// Whether the bytes begin as bytecode does; nothing else is looked at.
bool is_bytecode(std::string_view bytes);

// An op whose place in a source file is unknown gets the place FILE:OP NAME, with its number in the
// module (pre-order, the module is 1) as the line. Every mistake is a Diagnostic with `file`.
std::expected<Module, Diagnostics> read_bytecode(std::string_view bytes,
                                                 std::string_view file = "<bytecode>");

// The locations that JAX keeps beside a body, a module with the attribute tpu.locs: one entry for
// every op and block argument of the body, in the order of apply_locations (location.h).
std::expected<std::vector<Location>, Diagnostics> read_bytecode_locations(std::string_view bytes,
                                                                          std::string_view file);

}  // namespace gridless::ir
