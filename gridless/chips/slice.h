// A slice: a box of chips of one kind, named as the TPU compiler names it, e.g. tpu7x:2x2x4.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless::chips {

// Where a device (= core) sits: the chip's place in the grid and the core within the chip.
struct DeviceCoordinates {
  int x = 0, y = 0, z = 0;
  int core = 0;
  bool operator==(const DeviceCoordinates&) const = default;
};

// A box of x * y * z chips. On tpu7x each chip has two TensorCores and each is its own device.
struct Slice {
  std::string chip = "tpu7x";
  std::array<int, 3> shape = {1, 1, 1};

  int chips() const { return shape[0] * shape[1] * shape[2]; }
  int cores() const { return 2 * chips(); }
  // "tpu7x:2x2x4", the topology name that libtpu takes.
  std::string name() const;
  // Device ids run over x fastest, then y, then z; the two cores of a chip are adjacent (2c, 2c +
  // 1).
  DeviceCoordinates coordinates(int device) const;
  int device(const DeviceCoordinates& at) const;

  bool operator==(const Slice&) const = default;
};

// Parses "tpu7x:XxYxZ". An unknown chip, a missing dimension or a shape outside of what libtpu
// accepts is an input error that says which names are right.
Result<Slice> parse_slice(std::string_view name);

// The smallest slice of tpu7x with at least `cores` cores: 1x1x1, 1x2x1, 2x2x1, 2x2x2, 2x2x4, ...
Result<Slice> smallest_slice(int cores);

}  // namespace gridless::chips
