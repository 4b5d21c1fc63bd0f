// Slices: names, numbering, sizes.
#include "gridless/chips/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace gridless::chips {
namespace {

using testing::HasSubstr;

TEST(Slice, ParsesNamesOfTopologies) {
  const auto slice = parse_slice("tpu7x:2x2x4");
  ASSERT_TRUE(slice) << slice.error().message;
  EXPECT_EQ(slice->shape, (std::array<int, 3>{2, 2, 4}));
  EXPECT_EQ(slice->chips(), 16);
  EXPECT_EQ(slice->cores(), 32);
  EXPECT_EQ(slice->name(), "tpu7x:2x2x4");
}

TEST(Slice, SaysWhatIsWrongWithAName) {
  for (const char* bad : {"", "tpu7x", "2x2x1", "v5e:2x2x1", "tpu7x:2x2", "tpu7x:2x2x",
                          "tpu7x:0x1x1", "tpu7x:2x2x1x1", "tpu7x:-1x2x1", "tpu7x:axbxc",
                          "tpu7x:33x1x1", "tpu7x:32x32x32", "tpu7x:99999999999x1x1"}) {
    const auto slice = parse_slice(bad);
    ASSERT_FALSE(slice) << bad;
    EXPECT_EQ(slice.error().kind, Error::Kind::kInput);
    EXPECT_THAT(slice.error().message, HasSubstr(bad));
  }
}

TEST(Slice, DevicesRunOverXThenYThenZWithTheCoresOfAChipAdjacent) {
  const Slice slice{.shape = {2, 2, 4}};
  EXPECT_EQ(slice.coordinates(0), (DeviceCoordinates{0, 0, 0, 0}));
  EXPECT_EQ(slice.coordinates(1), (DeviceCoordinates{0, 0, 0, 1}));
  EXPECT_EQ(slice.coordinates(2), (DeviceCoordinates{1, 0, 0, 0}));
  EXPECT_EQ(slice.coordinates(5), (DeviceCoordinates{0, 1, 0, 1}));
  EXPECT_EQ(slice.coordinates(8), (DeviceCoordinates{0, 0, 1, 0}));
  EXPECT_EQ(slice.coordinates(31), (DeviceCoordinates{1, 1, 3, 1}));
}

TEST(Slice, CoordinatesAndDevicesAreInverse) {
  for (const std::array<int, 3> shape : {std::array{1, 1, 1}, {1, 2, 1}, {2, 3, 5}, {4, 4, 4}}) {
    const Slice slice{.shape = shape};
    for (int i = 0; i < slice.cores(); ++i) EXPECT_EQ(slice.device(slice.coordinates(i)), i);
  }
}

// Links between two chips: one step along one axis, or from end to end of an axis that wraps.
bool linked(const Slice& slice, const DeviceCoordinates& a, const DeviceCoordinates& b) {
  const int from[] = {a.x, a.y, a.z}, to[] = {b.x, b.y, b.z};
  int steps = 0;
  for (int i = 0; i < 3; ++i) {
    const int d = std::abs(from[i] - to[i]);
    steps += slice.wraps() ? std::min(d, slice.shape[i] - d) : d;
  }
  return steps == 1;
}

bool closes(const Slice& slice) {
  const std::vector<int> order = slice.core_order(slice.cores());
  return linked(slice, slice.coordinates(order.back()), slice.coordinates(order.front()));
}

TEST(CoreOrder, IsAPathAlongLinksThroughEveryChipOfAnySlice) {
  rc::check([] {
    const Slice slice{
        .shape = {*rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9), *rc::gen::inRange(1, 9)}};
    const std::vector<int> order = slice.core_order(slice.cores());
    RC_ASSERT(std::set<int>(order.begin(), order.end()).size() ==
              static_cast<size_t>(slice.cores()));
    for (int c = 0; c < slice.cores(); c += 2) {
      const DeviceCoordinates a = slice.coordinates(order[c]), b = slice.coordinates(order[c + 1]);
      RC_ASSERT(a.core == 0 && b.core == 1 && a.x == b.x && a.y == b.y && a.z == b.z);
      if (c > 0) RC_ASSERT(linked(slice, slice.coordinates(order[c - 1]), a));
    }
  });
}

TEST(CoreOrder, ClosesToARingOnTheSlicesThatAreSold) {
  for (const char* name : {"tpu7x:1x2x1", "tpu7x:2x2x1", "tpu7x:2x2x2", "tpu7x:2x2x4",
                           "tpu7x:2x4x4", "tpu7x:4x4x4", "tpu7x:4x4x8", "tpu7x:8x8x8"}) {
    EXPECT_TRUE(closes(*parse_slice(name))) << name;
  }
  EXPECT_EQ(parse_slice("tpu7x:1x1x1")->core_order(2), (std::vector{0, 1}));
  EXPECT_EQ(parse_slice("tpu7x:2x2x1")->core_order(8), (std::vector{0, 1, 2, 3, 6, 7, 4, 5}));
}

// What the compiler turns into exclusive ors instead of a table.
TEST(CoreOrder, IsLinearOverBitsWhereTheSidesArePowersOfTwo) {
  for (const char* name : {"tpu7x:2x2x1", "tpu7x:2x2x4", "tpu7x:4x4x4"}) {
    const Slice slice = *parse_slice(name);
    const std::vector<int> order = slice.core_order(slice.cores());
    for (int a = 0; a < slice.cores(); ++a) {
      for (int b = 0; b < slice.cores(); ++b) EXPECT_EQ(order[a ^ b], order[a] ^ order[b]) << name;
    }
  }
}

TEST(Slice, TheSmallestSliceHoldsTheCoresAndNoSmallerOneDoes) {
  const std::pair<int, const char*> expected[] = {
      {1, "tpu7x:1x1x1"},   {2, "tpu7x:1x1x1"},     {3, "tpu7x:1x2x1"},  {4, "tpu7x:1x2x1"},
      {8, "tpu7x:2x2x1"},   {9, "tpu7x:2x2x2"},     {32, "tpu7x:2x2x4"}, {64, "tpu7x:2x4x4"},
      {128, "tpu7x:4x4x4"}, {4096, "tpu7x:8x16x16"}};
  for (const auto& [cores, name] : expected) EXPECT_EQ(smallest_slice(cores)->name(), name);
  EXPECT_FALSE(smallest_slice(0));
  EXPECT_FALSE(smallest_slice(4097));
}

}  // namespace
}  // namespace gridless::chips
