#include "gridless/base/markup.h"

#include <gtest/gtest.h>

namespace gridless {
namespace {

TEST(Markup, LettersThatMeanSomethingAreEscaped) {
  EXPECT_EQ(escape_markup("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; 'd'");
  EXPECT_EQ(escape_markup(""), "");
  EXPECT_EQ(escape_markup("&lt;"), "&amp;lt;");
}

TEST(Markup, ControlLettersAreShownAsQuestionMarks) {
  EXPECT_EQ(escape_markup(std::string_view("a\x01\0\x1f z", 6)), "a??? z");
  EXPECT_EQ(escape_markup("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(escape_markup("\xc3\xa9\x7f"), "\xc3\xa9\x7f");
}

}  // namespace
}  // namespace gridless
