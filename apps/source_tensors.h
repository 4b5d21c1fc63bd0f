// Values of named scalar sources from a safetensors file: a tensor per source, under the source's
// name, of any integer format; its shape are the extents that the kernel declares, behind the
// number of groups of cores where those have values of their own.
#pragma once

#include <optional>
#include <string>

#include "gridless/base/error.h"
#include "gridless/emulate/source_values.h"

namespace gridless::apps {

// Nothing if the file has values of none of the sources. Errors: a tensor of another shape, or of
// floats.
Result<std::optional<emulate::SourceValues>> read_sources(const std::string& path,
                                                          std::span<const ir::Source> sources,
                                                          int cores);

}  // namespace gridless::apps
