// Patterns and files of named scalar sources: every value in its range, distinct where declared.
#include "gridless/emulate/source_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gridless::emulate {
namespace {

std::vector<ir::Source> shapes() {
  return {{"one", -3, 4},
          {"count", 0, 7, {16}},
          {"expert", 0, 895, {3, 8, 16}, true},
          {"all", 5, 12, {2, 8}, true},  // a permutation
          {"page", 0, 9999, {2, 300}, true},
          {"own", 0, 100, {64}, false, 1},
          {"shared", 0, 1 << 20, {64}, false, 4}};
}

template <typename F>
void for_each_index(const ir::Source& s, const F& f) {
  std::vector<int64_t> index(s.extents.size(), 0);
  for (int64_t k = 0; k < s.num_values(); ++k) {
    int64_t rest = k;
    for (size_t d = index.size(); d-- > 0;) {
      index[d] = rest % s.extents[d];
      rest /= s.extents[d];
    }
    f(k, index);
  }
}

TEST(SourceValues, EverySeedKeepsTheDeclaration) {
  constexpr int kCores = 8;
  for (int seed = 1; seed <= SourceValues::kPatterns + 2; ++seed) {
    const SourceValues values = SourceValues::of_seed(seed);
    for (const ir::Source& s : shapes()) {
      SCOPED_TRACE(s.name + ", " + values.str());
      std::set<int64_t> row;
      for_each_index(s, [&](int64_t k, const std::vector<int64_t>& index) {
        const int64_t v = values.at(s, 0, kCores, index).value();
        EXPECT_GE(v, s.lo);
        EXPECT_LE(v, s.hi);
        if (!s.distinct) return;
        if (k % s.extents.back() == 0) row.clear();
        EXPECT_TRUE(row.insert(v).second) << v << " twice in a row";
      });
    }
  }
}

TEST(SourceValues, CoresOfAGroupAgreeAndOthersDiffer) {
  const SourceValues random = SourceValues::of_seed(1);
  for (const ir::Source& s : shapes()) {
    if (s.extents != ir::Shape{64}) continue;
    int same_group = 0, other_group = 0;
    for_each_index(s, [&](int64_t, const std::vector<int64_t>& index) {
      const auto at = [&](int core) { return random.at(s, core, 8, index).value(); };
      same_group += at(0) == at(static_cast<int>(s.alike) - 1);
      other_group += at(0) == at(static_cast<int>(s.alike));
    });
    EXPECT_EQ(same_group, 64) << s.name;
    EXPECT_LT(other_group, 8) << s.name;
  }
}

TEST(SourceValues, PatternsAreWhatTheyAreCalled) {
  const ir::Source experts{"expert", 0, 63, {32, 2}, true}, count{"count", 0, 7, {32}};
  std::vector<int64_t> index = {5, 1}, row = {9};
  const auto at = [&](int seed, const ir::Source& s, const std::vector<int64_t>& i) {
    return SourceValues::of_seed(seed).at(s, 0, 4, i).value();
  };
  EXPECT_EQ(at(2, count, row), 0);
  EXPECT_EQ(at(3, count, row), 7);
  EXPECT_EQ(at(2, experts, index), 1);
  EXPECT_EQ(at(3, experts, index), 62);
  EXPECT_EQ(at(4, experts, index), at(4, experts, {31, 1})) << "all rows to the same experts";
  EXPECT_EQ(at(5, experts, index) / 16, at(5, experts, {17, 0}) / 16) << "one core's share of 64";
  EXPECT_EQ(at(6, experts, index), 11) << "spread evenly";
}

TEST(SourceValues, ATensorIsIndexedByGroupAndPlace) {
  const ir::Source s{"own", 0, 100, {3}, false, 2};
  const auto values = SourceValues::of_tensors({{"own", {{2, 3}, {1, 2, 3, 4, 5, 6}}}});
  EXPECT_EQ(values.problem(std::vector{s}, 4), "");
  EXPECT_EQ(values.at(s, 1, 4, std::vector<int64_t>{2}), 3);
  EXPECT_EQ(values.at(s, 3, 4, std::vector<int64_t>{0}), 4);
  EXPECT_EQ(values.at({"other", 0, 1}, 0, 4, {}), std::nullopt);
  EXPECT_THAT(values.problem(std::vector{s}, 2), testing::HasSubstr("takes 3"));
}

}  // namespace
}  // namespace gridless::emulate
