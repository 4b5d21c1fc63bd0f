// What launches cost, and how many drafts pay.
#include "gridless/decode/launch_times.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace gridless::decode {
namespace {

// Every row count measured as often as counts, the first launch being left out.
LaunchTimes measured(const std::vector<std::pair<int64_t, double>>& ms) {
  LaunchTimes out;
  for (const auto& [rows, t] : ms) {
    for (int i = 0; i < 4; ++i) out.add(rows, t);
  }
  return out;
}

TEST(LaunchTimes, NothingIsKnownBeforeTheSecondLaunchOfOneRow) {
  LaunchTimes times;
  EXPECT_EQ(times.ms(1), 0);
  times.add(1, 500);
  EXPECT_EQ(times.ms(1), 0);
  EXPECT_EQ(drafts_worth_verifying(std::vector(7, 1.0), times), 0);
  times.add(1, 8);
  EXPECT_EQ(times.ms(1), 8);
  EXPECT_EQ(times.ms(4), 8 * 1.75);
}

TEST(LaunchTimes, TheLeastOfTheLastFewCounts) {
  LaunchTimes times;
  for (const double ms : {900.0, 3.0, 10.0, 30.0, 12.0}) times.add(1, ms);
  EXPECT_EQ(times.ms(1), 3);
  for (int i = 0; i < 8; ++i) times.add(1, 20 + i);
  EXPECT_EQ(times.ms(1), 20);
}

TEST(LaunchTimes, GuessesLieBetweenTheNeighboursMeasured) {
  const LaunchTimes times = measured({{64, 71}, {8, 15}, {1, 8}});
  EXPECT_NEAR(times.ms(4), 8 + 7 * 3.0 / 7, 0.3);
  EXPECT_NEAR(times.ms(16), 15 + 56 * 8.0 / 56, 1.5);
}

TEST(LaunchTimes, OneBadMomentIsNoReasonToGiveUp) {
  LaunchTimes times = measured({{1, 8}});
  for (int i = 0; i < 3; ++i) times.add(2, 100);  // the first is not counted
  EXPECT_NEAR(times.ms(2), 10, 0.2);              // what was guessed
  times.add(2, 100);
  EXPECT_EQ(times.ms(2), 100);
}

TEST(LaunchTimes, EstimatesThatNobodyRenewsFadeByAThirdAtMost) {
  LaunchTimes times = measured({{2, 10}, {1, 8}});
  for (int i = 0; i < 20; ++i) times.add(1, 8);
  EXPECT_LT(times.ms(2), 9.5);
  for (int i = 0; i < 2000; ++i) times.add(1, 8);
  EXPECT_DOUBLE_EQ(times.ms(2), 7);
}

TEST(DraftsWorthVerifying, AsManyAsPay) {
  // Flat up to 8 rows, then by the row.
  const LaunchTimes times = measured({{32, 40}, {16, 20}, {8, 10}, {4, 9.2}, {2, 8.6}, {1, 8}});
  EXPECT_EQ(drafts_worth_verifying({}, times), 0);
  EXPECT_EQ(drafts_worth_verifying(std::vector(31, 0.0), times), 0);
  EXPECT_EQ(drafts_worth_verifying(std::vector(31, 0.01), times), 0);
  // 1.42 / 9.2 against 1.43 / 10: the fifth token is hardly ever reached.
  EXPECT_EQ(drafts_worth_verifying(std::vector(31, 0.3), times), 3);
  EXPECT_EQ(drafts_worth_verifying(std::vector(31, 0.8), times), 7);
  EXPECT_EQ(drafts_worth_verifying(std::vector(31, 1.0), times), 31);
  // A doubtful beginning spoils what follows.
  std::vector<double> odds(7, 1.0);
  odds[0] = 0.01;
  EXPECT_EQ(drafts_worth_verifying(odds, times), 0);
  odds[0] = 1;
  odds[3] = 0;
  EXPECT_EQ(drafts_worth_verifying(odds, times), 3);
}

TEST(DraftsWorthVerifying, WhatTheEndLeavesRoomForPaysTheLaunchItNeeds) {
  const LaunchTimes times = measured({{8, 30}, {4, 17}, {2, 11}, {1, 8}});
  EXPECT_EQ(drafts_worth_verifying(std::vector(1, 0.9), times), 1);   // 1.9 / 11
  EXPECT_EQ(drafts_worth_verifying(std::vector(2, 0.9), times), 1);   // 2.71 / 17 is less
  EXPECT_EQ(drafts_worth_verifying(std::vector(3, 0.95), times), 3);  // 3.7 / 17
  EXPECT_EQ(drafts_worth_verifying(std::vector(4, 0.95), times), 3);  // 4.5 / 30 is less
}

}  // namespace
}  // namespace gridless::decode
