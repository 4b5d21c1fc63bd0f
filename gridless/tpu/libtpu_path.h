// Where libtpu.so is on this machine.
#pragma once

#include <filesystem>
#include <string>

#include "gridless/base/error.h"

namespace gridless::tpu {

struct Libtpu {
  std::filesystem::path path;
  std::string
      wheel_version;  // "0.0.51", from the wheel's metadata beside it; "" when there is none
};

// In this order: `option` if not empty (the value of --libtpu: the file, or a folder that holds
// it); the environment variable GRIDLESS_LIBTPU; the wheel that ./dev fetched (../wheels/libtpu
// beside the folder of this executable); the libtpu package of a Python installation. A path that
// was asked for and is not there is an error; nothing found at all is one that says what to run.
Result<Libtpu> find_libtpu(const std::string& option);

}  // namespace gridless::tpu
