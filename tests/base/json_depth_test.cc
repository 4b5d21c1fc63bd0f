#include "gridless/base/json_depth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gridless {
namespace {

using ::testing::HasSubstr;

std::string nested(int depth, char open = '[', char close = ']') {
  return std::string(static_cast<size_t>(depth), open) +
         std::string(static_cast<size_t>(depth), close);
}

TEST(JsonDepth, TheLimitIsTheLastDepthThatPasses) {
  EXPECT_TRUE(check_json_depth(nested(kJsonDepth), "f.json"));
  EXPECT_FALSE(check_json_depth(nested(kJsonDepth + 1), "f.json"));
  EXPECT_FALSE(check_json_depth(nested(100000, '{', '}'), "f.json"));
  const auto deep = check_json_depth("{\"a\": " + nested(kJsonDepth) + "}", "f.json");
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().message, HasSubstr("f.json nests its JSON deeper than 512 levels"));
}

TEST(JsonDepth, LengthIsNotDepth) {
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "[{}],";
  EXPECT_TRUE(check_json_depth(wide, "f.json"));
}

TEST(JsonDepth, BracketsInStringsDoNotCount) {
  const std::string many(1000, '[');
  EXPECT_TRUE(check_json_depth("[\"" + many + "\"]", "f.json"));
  EXPECT_TRUE(check_json_depth("[\"\\\"" + many + "\"]", "f.json"));       // an escaped quote
  EXPECT_FALSE(check_json_depth("[\"\\\\\", " + many + "\"]", "f.json"));  // an escaped backslash
  EXPECT_TRUE(check_json_depth("\"\\", "f.json"));                         // cut in an escape
  EXPECT_TRUE(check_json_depth("", "f.json"));
}

}  // namespace
}  // namespace gridless
