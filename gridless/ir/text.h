// MLIR generic text: printing and parsing.
//
// print() writes the stable_mosaic generic form that libtpu takes
// ("stable_mosaic.arith.addf"(...)). In memory there is one form, the newest (version 18: wait_dma
// with wait_target, seven DMA segments); printing at 13 down-levels: wait_dma becomes wait_dma2,
// segments shrink to the arity of that version. parse() takes versions 1 to 18 of the stable form,
// and the plain form without the prefix, and maps older forms (wait_dma2, six segments) to the
// newest.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "gridless/base/diagnostic.h"
#include "gridless/ir/location.h"
#include "gridless/ir/module.h"

namespace gridless::ir {

struct PrintOptions {
  int version = 13;        // 13 for libtpu (every version it accepts), 18 for a round trip
  bool locations = false;  // write loc("file":line:col) after every op that has one
};

std::string print(const Module& module, const PrintOptions& options = {});

// Pieces, for messages and tests: an attribute ("dense<0.000000e+00> : vector<8xf32>"), a
// dictionary
// ("{a = 1 : i32}"), a string in quotes with its escapes.
std::string print(const Attr& attr);
std::string print_dict(const std::vector<NamedAttr>& attrs);
std::string print_string(std::string_view s);

// Every mistake is a Diagnostic with `file`, line and column of the text.
std::expected<Module, Diagnostics> parse(std::string_view text, std::string_view file = "<text>");

// The text form of what read_bytecode_locations() of bytecode.h reads; of every place only the
// innermost call.
std::expected<std::vector<Location>, Diagnostics> parse_locations(std::string_view text,
                                                                  std::string_view file);

}  // namespace gridless::ir
