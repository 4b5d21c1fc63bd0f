// From what a user types as MODEL to the path of a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::weights {

// The names of models that set-up fetches: "smollm2".
std::vector<std::string> known_models();

// Anything but a known name is a path and must exist. A known name is looked up as its file in
// $GRIDLESS_MODELS, $GRIDLESS_MODELS/NAME, <directory of the program>/../models/NAME and
// ./build/models/NAME, in this order. The error says what to do.
Result<std::string> resolve_model(const std::string& name_or_path);

}  // namespace gridless::weights
