// A PJRT plugin loaded into this process: typed, checked calls over pjrt_abi.h.
//
// libtpu aborts the process on some bad programs and keeps process-wide state, so nothing but the
// compile worker (worker.h) and tests should hold a Plugin. Not thread-safe; one per process.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/tpu/compile_options.h"
#include "gridless/tpu/compiled.h"

namespace gridless::tpu {

namespace abi {
struct Api;
struct Topology;
}  // namespace abi

class Plugin {
 public:
  // Loads the library and initialises it. Environment variables that it reads must be set before.
  static Result<Plugin> open(const std::string& path);

  int api_minor() const;
  // The plugin's own description of itself for `slice`, e.g. "PJRT C API\nTFRT TPU v7x\nBuilt on
  // ...".
  Result<std::string> platform_version(const chips::Slice& slice);

  struct Device {
    int id = 0;
    chips::DeviceCoordinates at;
  };
  Result<std::vector<Device>> devices(const chips::Slice& slice);

  // Compiles StableHLO text. `seconds` is the time inside PJRT_Compile. What the compiler says
  // about a program it refuses comes back as an input error with the compiler's text unchanged.
  Result<Compiled> compile(std::string_view stablehlo, const chips::Slice& slice,
                           const CompileOptions& options);

 private:
  explicit Plugin(const abi::Api* api) : api_(api) {}
  Result<abi::Topology*> topology(const chips::Slice& slice);

  const abi::Api* api_;
  std::map<std::string, abi::Topology*> topologies_;  // live as long as the process
};

}  // namespace gridless::tpu
