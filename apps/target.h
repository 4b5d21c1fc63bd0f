// TARGET of the commands: kernel:NAME[?key=value&...], model:NAME[?key=value&...], or a path with
// the same keys behind it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "gridless/base/error.h"
#include "gridless/ir/call.h"
#include "kernels/gallery.h"

namespace gridless::apps {

struct Target {
  enum class Kind { kKernel, kModel, kPath };
  Kind kind = Kind::kPath;
  std::string name;  // without the prefix and the keys
  std::map<std::string, std::string> keys;
};

// Errors: a key without a value, a key twice, an empty name.
Result<Target> parse_target(std::string_view text);

// The options of a gallery kernel. `cores`, when not 0, is the lesson's option of that name; a
// lesson that has none is for one core.
Result<kernels::Options> lesson_options(const kernels::Lesson& lesson, const Target& target,
                                        int cores);

// Builds it. Mistakes of the lesson itself are one error with all diagnostics.
Result<ir::Program> build_kernel(const Target& target, int cores = 0);

}  // namespace gridless::apps
