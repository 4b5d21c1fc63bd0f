// Collectives, as lesson 20 calls them: values against its plain loops, to the bit, on the emulator
// and on the CPU engine; and certificates for every timing, in whole kernels and in groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "gridless/emulate/check/check.h"
#include "tests/gallery/run_lesson.h"

namespace gridless::kernels {
namespace {

using Given = std::map<std::string, std::string>;

std::string label(const testing::TestParamInfo<Given>& info) {
  std::string s;
  for (const auto& [key, value] : info.param) s += (s.empty() ? "" : "_") + key + "_" + value;
  std::ranges::replace(s, '-', '_');
  return s;
}

const Lesson& lesson() { return **find_lesson("20_collectives"); }

void expect_proved(const Given& given, bool scalars_only) {
  const Built program = lesson().build(*lesson().with(given));
  ASSERT_TRUE(program) << to_string(program.error());
  const ir::Call& call = program->call;
  const std::vector<std::span<const std::byte>> none(call.operands.size());
  const auto report =
      emulate::check(program->module, call, call.cores, none, {.scalars_only = scalars_only});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(to_string(report->diagnostics()), "");
  EXPECT_TRUE(report->certificate);
}

class CollectiveValues : public testing::TestWithParam<Given> {};

TEST_P(CollectiveValues, AreThoseOfAPlainLoopToTheBit) {
  LessonRun run;
  ASSERT_TRUE(run_lesson(lesson(), GetParam(), 1, run));
  for (size_t core = 0; core < run.want.size(); ++core) {
    EXPECT_TRUE(run.got[core][0].bytes() == run.want[core][0].bytes()) << "on core " << core;
  }
}

TEST_P(CollectiveValues, AreRightForEveryTiming) { expect_proved(GetParam(), false); }

// All kinds and algorithms with each of some options.
std::vector<Given> for_each_kind(const std::vector<Given>& all) {
  std::vector<Given> out;
  for (const char* kind : {"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast"})
    for (const char* algorithm : {"direct", "ring", "hierarchical", "scattered"})
      for (Given given : all) {
        // Of the other kinds it is the direct one.
        if (std::string_view(algorithm) == "scattered" && std::string_view(kind) != "all-reduce") {
          continue;
        }
        given["kind"] = kind;
        given["algorithm"] = algorithm;
        out.push_back(std::move(given));
      }
  return out;
}

std::vector<Given> with_values() {
  std::vector<Given> all;
  for (const char* cores : {"2", "3", "4", "5", "6", "7", "8"})
    all.push_back({{"cores", cores}, {"rows", "1"}});
  const std::vector<Given> others = {
      {{"cores", "4"}, {"panels", "10"}, {"rows", "1"}, {"root", "2"}},
      {{"cores", "5"}, {"panels", "3"}, {"rows", "9"}, {"root", "4"}},
      {{"cores", "8"}, {"group", "4"}, {"rows", "1"}, {"root", "1"}},
      {{"cores", "8"}, {"stride", "2"}, {"rows", "1"}, {"root", "3"}},
      {{"cores", "6"}, {"group", "3"}, {"panels", "2"}, {"rows", "1"}},
      {{"cores", "6"}, {"stride", "2"}, {"rows", "1"}, {"calls", "4"}, {"root", "1"}},
  };
  all.insert(all.end(), others.begin(), others.end());
  return for_each_kind(all);
}

INSTANTIATE_TEST_SUITE_P(Each, CollectiveValues, testing::ValuesIn(with_values()), label);

// Larger groups are only proved; bench/collectives_bench.cc does it for every number up to 128.
class LargeCollective : public testing::TestWithParam<Given> {};

TEST_P(LargeCollective, IsRightForEveryTiming) { expect_proved(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Each, LargeCollective,
                         testing::ValuesIn(for_each_kind({{{"cores", "12"}},
                                                          {{"cores", "16"}},
                                                          {{"cores", "27"}},
                                                          {{"cores", "32"}, {"group", "16"}},
                                                          {{"cores", "32"}, {"stride", "4"}}})),
                         label);

TEST(Collectives, WrongGroupsAreSaidWithTheLine) {
  for (const Given& given : std::vector<Given>{{{"cores", "8"}, {"group", "3"}},
                                               {{"cores", "6"}, {"stride", "4"}},
                                               {{"cores", "4"}, {"root", "4"}}}) {
    const Built program = lesson().build(*lesson().with(given));
    ASSERT_FALSE(program);
    EXPECT_THAT(to_string(program.error()), testing::HasSubstr("20_collectives.cc"));
  }
}

}  // namespace
}  // namespace gridless::kernels
