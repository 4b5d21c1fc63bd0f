#include "gridless/chips/time_parameters.h"

#include <gtest/gtest.h>

#include <set>

namespace gridless::chips {
namespace {

TEST(TimeParameters, EveryFieldHasOneName) {
  std::set<std::string_view> names;
  for (const TimeParameter& t : time_parameters()) names.insert(t.name);
  EXPECT_EQ(names.size(), time_parameters().size());
  EXPECT_EQ(sizeof(TimeParameters) / sizeof(double), time_parameters().size());
}

TEST(TimeParameters, EverySetHasASourceAndRatesAboveZero) {
  for (const TimeParameterSet& s : tpu7x_time_parameters()) {
    EXPECT_FALSE(s.source.empty());
    EXPECT_GT(s.values.hbm_core_rate, 0);
    EXPECT_GT(s.values.clock_ghz, 0);
    EXPECT_TRUE(find_time_parameters(s.name).has_value());
  }
  EXPECT_FALSE(find_time_parameters("realistic").has_value());
}

TEST(TimeParameters, AssignmentsReplaceOrScale) {
  TimeParameters p;
  ASSERT_TRUE(set_parameter(p, "hbm_core_rate=3690").has_value());
  EXPECT_EQ(p.hbm_core_rate, 3690);
  ASSERT_TRUE(set_parameter(p, "hbm_core_rate=*0.5").has_value());
  EXPECT_EQ(p.hbm_core_rate, 1845);
  ASSERT_TRUE(set_parameter(p, "ici_core_rate=0").has_value());
}

TEST(TimeParameters, NonsenseIsRefused) {
  for (const char* bad :
       {"", "=", "hbm_core_rate", "hbm_core_rate=", "hbm_core_rate=0", "hbm_core_rate=-1",
        "hbm_core_rate=nan", "hbm_core_rate=inf", "hbm_core_rate=1e300", "hbm_core_rate=3x",
        "speed=3", "hbm_core_rate=*"}) {
    TimeParameters p;
    EXPECT_FALSE(set_parameter(p, bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace gridless::chips
