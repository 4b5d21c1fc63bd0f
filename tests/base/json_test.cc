#include "gridless/base/json.h"

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

TEST(Json, SaysWhereItIsWrong) {
  const auto error = [](std::string_view text) {
    const auto parsed = parse_json(text, "f.json");
    return parsed ? "accepted" : parsed.error().message;
  };
  EXPECT_EQ(error("{\"a\": [1, 2]}"), "accepted");
  EXPECT_THAT(error("{\n  \"a\": 1,\n  \"b\": x\n}"),
              HasSubstr("f.json is not valid JSON: line 3, column 8"));
  EXPECT_THAT(error("nope"), HasSubstr("line 1, column 2"));
  EXPECT_THAT(error("{} {}"), HasSubstr("line 1, column 4"));
  EXPECT_THAT(error("[1, 2"), HasSubstr("it ends too early, after 5 bytes"));
  EXPECT_THAT(error(""), HasSubstr("it ends too early, after 0 bytes"));
  EXPECT_THAT(error("[1e999]"), HasSubstr("f.json is not valid JSON"));
  EXPECT_THAT(error("\"\xff\""), HasSubstr("line 1, column 2"));
  EXPECT_THAT(error(nested(kJsonDepth + 1)), HasSubstr("deeper than 512 levels"));
}

}  // namespace
}  // namespace gridless
