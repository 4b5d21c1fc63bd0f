#include "gridless/chips/links.h"

#include <cstdlib>

namespace gridless::chips {

Links::Links(const Slice& slice, bool wraps) : slice_(slice), wraps_(wraps) {}

int Links::steps(int side, int a, int b) const {
  const int direct = b - a;
  if (!wraps_ || side <= 2) return direct;
  const int round = direct > 0 ? direct - side : direct + side;
  if (std::abs(direct) == std::abs(round)) return std::abs(direct);
  return std::abs(direct) < std::abs(round) ? direct : round;
}

int Links::hops(int from, int to) const {
  const DeviceCoordinates a = slice_.coordinates(from), b = slice_.coordinates(to);
  return std::abs(steps(slice_.shape[0], a.x, b.x)) + std::abs(steps(slice_.shape[1], a.y, b.y)) +
         std::abs(steps(slice_.shape[2], a.z, b.z));
}

std::vector<Link> Links::route(int from, int to) const {
  if (from == to) return {};
  const DeviceCoordinates start = slice_.coordinates(from), end = slice_.coordinates(to);
  std::array<int, 3> at = {start.x, start.y, start.z};
  const std::array<int, 3> goal = {end.x, end.y, end.z};
  std::vector<Link> out;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int side = slice_.shape[axis];
    const int n = steps(side, at[axis], goal[axis]), step = n < 0 ? -1 : 1;
    for (int k = 0; k < std::abs(n); ++k) {
      const int chip = slice_.device({.x = at[0], .y = at[1], .z = at[2], .core = 0}) / 2;
      out.push_back(chip * 6 + static_cast<int>(axis) * 2 + (step < 0 ? 1 : 0));
      at[axis] = (at[axis] + step + side) % side;
    }
  }
  // On one chip: from the core to its sibling.
  if (out.empty()) out.push_back(slice_.chips() * 6 + from);
  return out;
}

int Links::diameter() const {
  int sum = 0;
  for (const int side : slice_.shape) sum += wraps_ && side > 2 ? side / 2 : side - 1;
  return sum;
}

}  // namespace gridless::chips
