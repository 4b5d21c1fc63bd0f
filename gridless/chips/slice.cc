#include "gridless/chips/slice.h"

#include <algorithm>
#include <charconv>

#include "gridless/base/check.h"

namespace gridless::chips {
namespace {

constexpr std::string_view kChip = "tpu7x";
constexpr std::string_view kExamples = "tpu7x:1x1x1, tpu7x:2x2x1, tpu7x:2x2x4 or tpu7x:4x4x4";
// A pod is 9216 chips. Longer sides than 32 exist on no machine and would only hide typing errors.
constexpr int kMaxSide = 32;
constexpr int kMaxChips = 9216;

}  // namespace

std::string Slice::name() const {
  return fmt::format("{}:{}x{}x{}", chip, shape[0], shape[1], shape[2]);
}

DeviceCoordinates Slice::coordinates(int device) const {
  GRIDLESS_CHECK(device >= 0 && device < cores(), "device {} of {}", device, cores());
  const int c = device / 2;
  return {.x = c % shape[0],
          .y = c / shape[0] % shape[1],
          .z = c / (shape[0] * shape[1]),
          .core = device % 2};
}

int Slice::device(const DeviceCoordinates& at) const {
  return 2 * (at.x + shape[0] * (at.y + shape[1] * at.z)) + at.core;
}

bool Slice::wraps() const {
  return std::ranges::all_of(shape, [](int side) { return side % 4 == 0; });
}

std::vector<int> Slice::core_order(int n) const {
  GRIDLESS_CHECK(n >= 0 && n <= cores(), "{} cores of {}", n, cores());
  // Sides from the one that changes fastest to the slowest. A side of two goes last: the snake then
  // ends beside its start.
  std::array<int, 3> axes = {0, 1, 2};
  std::ranges::stable_sort(axes, [&](int a, int b) { return shape[a] != 2 && shape[b] == 2; });
  std::vector<int> out;
  for (int core = 0; core < n; ++core) {
    std::array<int, 3> at{};
    int chip = core / 2;
    for (const int axis : axes) {
      at[axis] = chip % shape[axis];
      chip /= shape[axis];  // rounds of this axis so far: every other one runs backwards
      if (chip % 2 == 1) at[axis] = shape[axis] - 1 - at[axis];
    }
    out.push_back(device({.x = at[0], .y = at[1], .z = at[2], .core = core % 2}));
  }
  return out;
}

Result<Slice> parse_slice(std::string_view name) {
  Slice slice;
  const size_t colon = name.find(':');
  if (name.substr(0, colon) != kChip) {
    return input_error("slice '{}': the chip must be {}; write for example {}", name, kChip,
                       kExamples);
  }
  if (colon == std::string_view::npos) {
    return input_error("slice '{}' has no shape; write for example {}", name, kExamples);
  }
  const char* at = name.data() + colon + 1;
  const char* end = name.data() + name.size();
  for (int i = 0; i < 3; ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) {
      return input_error("slice '{}': the shape has three sides, XxYxZ; write for example {}", name,
                         kExamples);
    }
    const auto [next, error] = std::from_chars(at, end, slice.shape[i]);
    if (error != std::errc() || slice.shape[i] < 1 || slice.shape[i] > kMaxSide) {
      return input_error("slice '{}': every side is a number from 1 to {}; write for example {}",
                         name, kMaxSide, kExamples);
    }
    at = next;
  }
  if (at != end)
    return input_error("slice '{}': unexpected '{}' at the end", name, std::string_view(at, end));
  if (slice.chips() > kMaxChips) {
    return input_error("slice '{}' has {} chips; a pod has {}", name, slice.chips(), kMaxChips);
  }
  return slice;
}

Result<Slice> smallest_slice(int cores) {
  // One tray is 2x2x1; larger slices double one side after another.
  static constexpr std::array<int, 3> kShapes[] = {{1, 1, 1}, {1, 2, 1}, {2, 2, 1},  {2, 2, 2},
                                                   {2, 2, 4}, {2, 4, 4}, {4, 4, 4},  {4, 4, 8},
                                                   {4, 8, 8}, {8, 8, 8}, {8, 8, 16}, {8, 16, 16}};
  if (cores < 1) return input_error("{} cores: a program needs at least one", cores);
  for (const auto& shape : kShapes) {
    if (const Slice slice{.shape = shape}; slice.cores() >= cores) return slice;
  }
  return input_error("{} cores: the largest slice known has 4096; name one with --slice", cores);
}

}  // namespace gridless::chips
