#include "gridless/decode/stop_strings.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace gridless::decode {
namespace {

// All that comes out of a text pushed piece by piece.
std::string through(StopStrings& stops, const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += stops.push(piece);
  if (!stops.found()) out += stops.finish();
  return out;
}

TEST(StopStrings, HoldsBackWhatMayBecomeAStopString) {
  StopStrings stops({"END", "\n\n"});
  EXPECT_EQ(stops.push("one E"), "one ");
  EXPECT_EQ(stops.push("N"), "");
  EXPECT_EQ(stops.push("TER\n"), "ENTER");
  EXPECT_EQ(stops.push("two\nE"), "\ntwo\n");
  EXPECT_EQ(stops.push("ND three"), "");
  EXPECT_TRUE(stops.found());
  EXPECT_EQ(stops.push("more"), "");
}

TEST(StopStrings, CutsAtTheEarliestOfSeveral) {
  StopStrings stops({"cd", "bc"});
  EXPECT_EQ(through(stops, {"a", "b", "c", "d"}), "a");
  StopStrings whole({"cd", "bc"});
  EXPECT_EQ(through(whole, {"abcd"}), "a");
}

TEST(StopStrings, WhatIsHeldAtTheEndIsText) {
  StopStrings stops({"stop"});
  EXPECT_EQ(through(stops, {"don't st", "o"}), "don't sto");
  EXPECT_FALSE(stops.found());
}

TEST(StopStrings, NoneAndEmptyChangeNothing) {
  StopStrings none({});
  EXPECT_EQ(none.push("abc"), "abc");
  StopStrings empty({""});
  EXPECT_EQ(empty.push("abc"), "abc");
}

// However the text is cut into pieces, the result is the text before the first stop string whose
// end comes first.
RC_GTEST_PROP(StopStrings, PiecesDoNotMatter, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::element('a', 'b'));
  const auto pieces = *rc::gen::container<std::vector<std::string>>(letters);
  const auto stop = *rc::gen::nonEmpty(letters);
  std::string text;
  for (const std::string& p : pieces) text += p;
  StopStrings stops({stop});
  RC_ASSERT(through(stops, pieces) == text.substr(0, text.find(stop)));
  RC_ASSERT(stops.found() == (text.find(stop) != std::string::npos));
}

}  // namespace
}  // namespace gridless::decode
