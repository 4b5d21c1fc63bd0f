#include "gridless/chips/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

namespace gridless::chips {
namespace {

// Hops by breadth-first search over neighbours: knows nothing of dimension order.
std::vector<int> distances(const Slice& s, bool wraps, int from) {
  std::vector<int> out(static_cast<size_t>(s.chips()), -1);
  std::deque<int> open = {from};
  out[static_cast<size_t>(from)] = 0;
  while (!open.empty()) {
    const int chip = open.front();
    open.pop_front();
    const DeviceCoordinates at = s.coordinates(2 * chip);
    for (int axis = 0; axis < 3; ++axis)
      for (const int step : {1, -1}) {
        std::array<int, 3> c = {at.x, at.y, at.z};
        const int side = s.shape[static_cast<size_t>(axis)];
        int& x = c[static_cast<size_t>(axis)];
        x += step;
        if (x < 0 || x >= side) {
          if (!wraps || side <= 2) continue;
          x = (x + side) % side;
        }
        const int next = s.device({.x = c[0], .y = c[1], .z = c[2], .core = 0}) / 2;
        if (out[static_cast<size_t>(next)] >= 0) continue;
        out[static_cast<size_t>(next)] = out[static_cast<size_t>(chip)] + 1;
        open.push_back(next);
      }
  }
  return out;
}

TEST(Links, HopsAreTheShortestWayInEveryBoxWithAndWithoutWrap) {
  for (const auto& shape : std::vector<std::array<int, 3>>{
           {1, 1, 1}, {2, 2, 1}, {2, 2, 4}, {4, 4, 4}, {3, 5, 2}, {8, 1, 3}})
    for (const bool wraps : {false, true}) {
      const Slice slice{.shape = shape};
      const Links links(slice, wraps);
      int most = 0;
      for (int from = 0; from < slice.chips(); ++from) {
        const std::vector<int> want = distances(slice, wraps, from);
        for (int to = 0; to < slice.chips(); ++to) {
          EXPECT_EQ(links.hops(2 * from, 2 * to + 1), want[static_cast<size_t>(to)])
              << slice.name() << " wraps " << wraps << ": " << from << " to " << to;
          most = std::max(most, want[static_cast<size_t>(to)]);
        }
      }
      EXPECT_EQ(links.diameter(), most) << slice.name() << " wraps " << wraps;
    }
}

TEST(Links, ARouteHasOneLinkPerHopAndNoneTwice) {
  const Links links(Slice{.shape = {4, 4, 4}});
  ASSERT_TRUE(links.wraps());
  for (int to = 2; to < 128; ++to) {
    const std::vector<Link> route = links.route(5, to);
    if (to / 2 == 2) continue;
    EXPECT_EQ(static_cast<int>(route.size()), links.hops(5, to));
    EXPECT_EQ(std::set<Link>(route.begin(), route.end()).size(), route.size());
    for (const Link l : route) {
      EXPECT_GE(l, 0);
      EXPECT_LT(l, 64 * 6);
    }
  }
}

TEST(Links, TheSiblingIsReachedOverTheDieAndNobodyOverAnything) {
  const Links links(Slice{.shape = {2, 2, 1}});
  ASSERT_EQ(links.route(4, 5).size(), 1u);
  EXPECT_TRUE(links.is_die_to_die(links.route(4, 5)[0]));
  EXPECT_NE(links.route(4, 5), links.route(5, 4));
  EXPECT_TRUE(links.route(3, 3).empty());
  EXPECT_FALSE(links.is_die_to_die(links.route(0, 2)[0]));
}

TEST(Links, XComesBeforeYBeforeZ) {
  const Slice slice{.shape = {2, 2, 2}};
  const Links links(slice);
  // From chip (0,0,0) to (1,1,1): +x of chip 0, +y of chip (1,0,0), +z of chip (1,1,0).
  EXPECT_EQ(links.route(0, 14), (std::vector<Link>{0 * 6 + 0, 1 * 6 + 2, 3 * 6 + 4}));
}

}  // namespace
}  // namespace gridless::chips
