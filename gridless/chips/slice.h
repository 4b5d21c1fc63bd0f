// A slice: a box of chips of one kind, named as the TPU compiler names it, e.g. tpu7x:2x2x4.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

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
  // The links of a side close to a ring only when every side is a multiple of four chips.
  bool wraps() const;

  // The device that runs core c of a program, for its cores 0 .. n-1. Cores 2k and 2k+1 are on one
  // chip, and the chips follow each other along links: a snake through the box (a reflected Gray
  // code over the coordinates, whose ids the compiler can compute with a few exclusive ors). For
  // the whole slice the last chip is a neighbour of the first too, if a side is two or the slice
  // wraps.
  std::vector<int> core_order(int n) const;

  bool operator==(const Slice&) const = default;
};

// Parses "tpu7x:XxYxZ". An unknown chip, a missing dimension or a shape outside of what libtpu
// accepts is an input error that says which names are right.
Result<Slice> parse_slice(std::string_view name);

// The smallest slice of tpu7x with at least `cores` cores: 1x1x1, 1x2x1, 2x2x1, 2x2x2, 2x2x4, ...
Result<Slice> smallest_slice(int cores);

}  // namespace gridless::chips
