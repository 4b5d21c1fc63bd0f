// Prompt lookup against a plain search, and the odds it learns.
#include "gridless/decode/ngram_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gridless::decode {
namespace {

using Ids = std::vector<int32_t>;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::Lt;

// For every length from the longest down, every earlier place from the last one back.
Ids plain_search(const Ids& text, size_t max_match, size_t count) {
  for (size_t n = std::min(max_match, text.size() - 1); n > 0; --n) {
    for (size_t end = text.size() - 1; end >= n; --end) {
      if (!std::equal(text.end() - static_cast<std::ptrdiff_t>(n), text.end(),
                      text.begin() + static_cast<std::ptrdiff_t>(end - n)))
        continue;
      Ids longer = text, out;
      for (size_t i = 0; i < count; ++i) {
        out.push_back(longer[end + i]);
        longer.push_back(out.back());
      }
      return out;
    }
  }
  return {};
}

Ids proposed(NgramDraft& draft, int64_t count) { return draft.propose(count).value().tokens; }

TEST(NgramDraft, LatestOccurrenceOfTheLongestMatch) {
  NgramDraft draft;
  ASSERT_TRUE(draft.start(Ids{1, 2, 3, 9, 2, 3, 8, 2, 3, 7, 1, 2, 3}));
  EXPECT_THAT(proposed(draft, 3), ElementsAre(9, 2, 3));  // after 1 2 3
  NgramDraft pairs(2);
  ASSERT_TRUE(pairs.start(Ids{1, 2, 3, 9, 2, 3, 8, 2, 3, 7, 1, 2, 3}));
  EXPECT_THAT(proposed(pairs, 3), ElementsAre(7, 1, 2));  // after the last 2 3
}

TEST(NgramDraft, NothingWhereNothingRepeats) {
  NgramDraft draft;
  ASSERT_TRUE(draft.start(Ids{5}));
  EXPECT_THAT(proposed(draft, 4), IsEmpty());
  ASSERT_TRUE(draft.append(Ids{6, 7}));
  EXPECT_THAT(proposed(draft, 4), IsEmpty());
}

TEST(NgramDraft, APeriodGoesOnBeyondTheEnd) {
  NgramDraft draft;
  ASSERT_TRUE(draft.start(Ids{4, 1, 2, 3, 1, 2, 3, 1, 2}));
  EXPECT_THAT(proposed(draft, 7), ElementsAre(3, 1, 2, 3, 1, 2, 3));
  ASSERT_TRUE(draft.start(Ids{6, 6}));
  EXPECT_THAT(proposed(draft, 3), ElementsAre(6, 6, 6));
}

TEST(NgramDraft, StartForgetsTheTextBefore) {
  NgramDraft draft;
  ASSERT_TRUE(draft.start(Ids{1, 2, 3, 1, 2}));
  ASSERT_TRUE(draft.start(Ids{1, 2}));
  EXPECT_THAT(proposed(draft, 4), IsEmpty());
}

TEST(NgramDraft, IsThePlainSearchOnRandomTexts) {
  std::mt19937 random(7);
  for (int run = 0; run < 60; ++run) {
    const auto max_match = 1 + random() % 5;
    const auto ids = 2 + random() % 4;
    const auto next = [&] { return static_cast<int32_t>(random() % ids); };
    Ids text;
    for (int i = 0; i < 5; ++i) text.push_back(next());
    NgramDraft draft(static_cast<int64_t>(max_match));
    ASSERT_TRUE(draft.start(text));
    while (text.size() < 60) {
      EXPECT_EQ(proposed(draft, 9), plain_search(text, max_match, 9))
          << "max_match " << max_match << ", " << ::testing::PrintToString(text);
      Ids more;
      for (auto n = 1 + random() % 4; n > 0; --n) more.push_back(next());
      ASSERT_TRUE(draft.append(more));
      text.insert(text.end(), more.begin(), more.end());
    }
  }
}

TEST(NgramDraft, OddsAreProbabilitiesOnePerToken) {
  NgramDraft draft;
  ASSERT_TRUE(draft.start(Ids{1, 2, 3, 1, 2, 3}));
  const Proposal p = draft.propose(20).value();
  ASSERT_EQ(p.odds.size(), p.tokens.size());
  EXPECT_THAT(p.odds, Each(Gt(0.0)));
  EXPECT_THAT(p.odds, Each(Lt(1.0)));
}

TEST(NgramDraft, OddsFollowWhatCameTrue) {
  // The prompt alone teaches nothing.
  Ids round;
  for (int32_t i = 0; i < 50; ++i) round.push_back(i);
  NgramDraft repeating;
  ASSERT_TRUE(repeating.start(round));
  ASSERT_TRUE(repeating.append(Ids{0}));
  const double before = repeating.propose(10).value().odds.back();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(repeating.append(std::span(round).subspan(i == 0)));
  EXPECT_GT(repeating.propose(10).value().odds.back(), 0.95);
  EXPECT_GT(repeating.propose(10).value().odds.back(), before);

  // 0 is followed by something new every time.
  NgramDraft surprising;
  ASSERT_TRUE(surprising.start(Ids{0, 1}));
  for (int32_t i = 2; i < 40; ++i) ASSERT_TRUE(surprising.append(Ids{0, i}));
  ASSERT_TRUE(surprising.append(Ids{0}));
  const Proposal p = surprising.propose(1).value();
  ASSERT_EQ(p.tokens.size(), 1u);
  EXPECT_LT(p.odds[0], 0.05);
}

}  // namespace
}  // namespace gridless::decode
