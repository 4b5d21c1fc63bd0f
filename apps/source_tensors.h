// Values of named scalar sources from a safetensors file: a tensor per source, under the source's
// name, of any integer format; its shape are the extents that the kernel declares, behind the
// number of groups of cores where those have values of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/emulate/source_values.h"
#include "gridless/ir/call.h"

namespace gridless::apps {

// Nothing if the file has values of none of the sources. Errors: a tensor of another shape, or of
// floats.
Result<std::optional<emulate::SourceValues>> read_sources(const std::string& path,
                                                          std::span<const ir::Source> sources,
                                                          int cores);

// What tensors of such a file may be called: the operands (in0, in1, ... and their own names), and
// the sources.
std::vector<std::string> names_of(const ir::Call& call, std::span<const ir::Source> sources);

// An error if no tensor of the file has one of these names.
Result<void> check_names(const std::string& path, const std::vector<std::string>& names);

// The option that takes such a file. `names`: "--scalars"; `more`: what else it may hold.
void add_scalars_option(CLI::App* command, const std::string& names, std::string& file,
                        std::string_view more);

}  // namespace gridless::apps
