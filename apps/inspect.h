// What `gridless inspect` can look into: one function per kind of file, each in a file of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gridless/base/error.h"

namespace gridless::apps {

struct InspectOptions {
  bool json = false;
  bool every_tensor = false;  // list tensors one by one instead of by kind
};

// A checkpoint: a directory, a .safetensors or a .gguf file. Prints to stdout.
Result<void> inspect_checkpoint(const std::string& path, const InspectOptions& options);

}  // namespace gridless::apps
