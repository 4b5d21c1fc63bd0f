// How compiled programs want their operands in a device's memory. A plugin puts an array where it
// likes it best: libtpu lays a [49152, 5, 128] one out with the middle dimension outermost, and a
// [4, 1] one transposed. A program that was compiled for row-major operands refuses such buffers,
// so they are asked for in the layout that the program says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/tpu/pjrt_call.h"

namespace gridless::tpu {

// XLA's text for each parameter, "{1,0:T(8,128)}"; nothing when the plugin cannot say.
std::vector<std::string> parameter_layouts(const abi::Api& api, abi::Executable* executable);

// The same for a buffer to be made.
class DeviceLayout {
 public:
  // An error for what cannot be asked for: memory spaces, sub-byte packing, tiles that join
  // dimensions.
  static Result<DeviceLayout> parse(std::string_view text);

  const std::vector<int64_t>& minor_to_major() const { return minor_to_major_; }
  const std::vector<int64_t>& tile_dims() const { return tile_dims_; }
  const std::vector<size_t>& tile_sizes() const { return tile_sizes_; }

  // Points into this object.
  abi::MemoryLayout asked() const;

 private:
  std::vector<int64_t> minor_to_major_, tile_dims_;
  std::vector<size_t> tile_sizes_;
};

}  // namespace gridless::tpu
