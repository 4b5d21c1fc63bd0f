// Layouts of operands as XLA writes them, and as a buffer is asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "gridless/tpu/pjrt_layouts.h"

namespace gridless::tpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DeviceLayout, ReadsOrderAndTiles) {
  const auto kv = DeviceLayout::parse("{4,3,2,1,0:T(8,128)(2,1)}");
  ASSERT_TRUE(kv) << kv.error().message;
  EXPECT_THAT(kv->minor_to_major(), ElementsAre(4, 3, 2, 1, 0));
  EXPECT_THAT(kv->tile_dims(), ElementsAre(8, 128, 2, 1));
  EXPECT_THAT(kv->tile_sizes(), ElementsAre(2, 2));
  const auto line = DeviceLayout::parse("{0:T(128)}");
  ASSERT_TRUE(line);
  EXPECT_THAT(line->tile_dims(), ElementsAre(128));
  const auto plain = DeviceLayout::parse("{0,1}");
  ASSERT_TRUE(plain);
  EXPECT_THAT(plain->minor_to_major(), ElementsAre(0, 1));
  EXPECT_THAT(plain->tile_sizes(), IsEmpty());
}

TEST(DeviceLayout, RefusesWhatABufferCannotBeAskedFor) {
  for (const char* text :
       {"", "{", "{}", "{1,0", "{1,0:}", "{1,0:T(8,128)", "{1,0:T(8,128)S(1)}", "{1,0:T(*,128)}",
        "{1,0:E(4)}", "{1,0:T(8,128)}x", "{1,0:T()}", "{a}", "{1,,0}", "{99999999999999999999}"}) {
    const auto refused = DeviceLayout::parse(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().kind, Error::Kind::kInput);
  }
}

TEST(DeviceLayout, IsAskedForInTheTermsOfPjrt) {
  const auto layout = DeviceLayout::parse("{1,0:T(4,128)}");
  ASSERT_TRUE(layout);
  const abi::MemoryLayout asked = layout->asked();
  EXPECT_EQ(asked.type, 0);
  EXPECT_THAT(std::span(asked.minor_to_major, asked.num_dims), ElementsAre(1, 0));
  ASSERT_EQ(asked.num_tiles, 1u);
  EXPECT_EQ(asked.tile_dim_sizes[0], 2u);
  EXPECT_EQ(asked.tile_dims[1], 128);
}

}  // namespace
}  // namespace gridless::tpu
