// The report as text, JSON and HTML, and the comparison of two.
#include "gridless/bundles/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gridless/bundles/diff.h"
#include "tests/bundles/recorded.h"

namespace gridless::bundles {
namespace {

using testing::HasSubstr;
using testing::Not;

Report report(const std::string& kernel) {
  const auto dump = read_dump(recorded_folder(kernel));
  EXPECT_TRUE(dump) << dump.error().message;
  auto made = make_report(*dump);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

// A listing of two lines of source, the second one waiting `empty` cycles.
Report made_up(int empty, const std::string& file = "k.cc") {
  Dump dump{.kernel = "made_up"};
  dump.schedule =
      fmt::format("0 : {{ %v1_v0 = vadd.f32 %v9_v0, %v8_v1 /* loc(\"{}\":1:1) */ }}\n", file);
  for (int i = 0; i < empty; ++i) dump.schedule += fmt::format("{:#x} : {{}}\n", i + 1);
  dump.schedule += fmt::format(
      "{:#x} : {{ %v2_v0 = vmul.f32 %v1_v0, %v1_v0 /* loc(\"{}\":2:1) */ }}\n", empty + 1, file);
  return *make_report(dump);
}

TEST(Report, OfARecordedKernelIsCompleteInJson) {
  const auto json = to_json(report("matmul"));
  EXPECT_EQ(json["format"], 1);
  EXPECT_EQ(json["listing"], "schedule");
  EXPECT_EQ(json["cycles"], 333);
  EXPECT_EQ(json["empty_cycles"], 237);
  EXPECT_EQ(json["bundles"], 96);
  EXPECT_EQ(json["code_bundles"], 96);
  EXPECT_EQ(json["code_bytes"], 96 * 64);
  EXPECT_EQ(json["all_trips_known"], true);
  EXPECT_EQ(json["loops"][0]["trips"], 4);
  EXPECT_EQ(json["loops"][0]["location"], "kernels/05_matmul.cc:38");
  EXPECT_EQ(json["lines"][0]["location"], "kernels/05_matmul.cc:40");
  double lines = 0, regions = 0, gaps = 0, slots = 0;
  for (const auto& line : json["lines"]) lines += line["cycles"].get<double>();
  for (const auto& region : json["regions"]) regions += region["cycles"].get<double>();
  for (const auto& gap : json["gaps"]) gaps += gap["cycles"].get<double>();
  for (const auto& slot : json["slots"]) slots += slot["issued"].get<double>();
  EXPECT_NEAR(lines, 333, 1e-6);
  EXPECT_EQ(regions, 333);
  EXPECT_EQ(gaps, 237);
  EXPECT_EQ(slots, json["instructions"].get<double>());
  // libtpu's chain of the loop. Two copies at its head are gone from the schedule.
  int chains = 0;
  for (const auto& path : json["critical_paths"]) {
    if (path["cycles"] != 292) continue;
    ++chains;
    EXPECT_EQ(path["first"], 0x1e);
    EXPECT_EQ(path["schedule_cycles"], 290);
  }
  EXPECT_EQ(chains, 1);
}

TEST(Report, TextNamesLinesLoopsCausesAndTheChain) {
  const std::string text = to_text(report("matmul"), 3);
  EXPECT_THAT(text, HasSubstr("333 cycles, 237 of them empty (71 %); 1212 with loops counted\n"));
  EXPECT_THAT(text, HasSubstr("kernels/05_matmul.cc:40"));
  EXPECT_THAT(text, HasSubstr("results of a matrix product"));
  EXPECT_THAT(text, HasSubstr("chain of instructions: 292 cycles at least, 290 in the schedule"));
  EXPECT_THAT(text, HasSubstr("more lines"));
  EXPECT_THAT(to_text(report("while"), 3), HasSubstr("at least"));
}

TEST(Report, CodeAloneHasBundlesInsteadOfCycles) {
  const auto dump = read_dump(recorded_folder("matmul") + "/final_bundles.txt");
  const auto made = make_report(*dump);
  ASSERT_TRUE(made) << made.error().message;
  const auto json = to_json(*made);
  EXPECT_EQ(json["listing"], "code");
  EXPECT_EQ(json["gaps"].size(), 0u);
  EXPECT_THAT(to_text(*made, 3), HasSubstr("cycles below are bundles of code"));
}

TEST(Report, RefusesADumpWithoutAListing) {
  EXPECT_THAT(make_report(Dump{.kernel = "x"}).error().message, HasSubstr("neither"));
  EXPECT_THAT(make_report(Dump{.kernel = "x", .schedule = "hello"}).error().message,
              HasSubstr("packed-bundles-post-ra.txt: no instruction bundles"));
}

// Every element that was opened is closed or of a kind that HTML closes by itself; nothing is
// loaded, nothing runs.
TEST(Html, StandsOnItsOwn) {
  for (const char* kernel : {"matmul", "softmax", "double_buffer", "all_reduce", "while"}) {
    const std::string page = to_html(report(kernel));
    EXPECT_TRUE(page.starts_with("<!doctype html>"));
    for (const char* outside : {"http", "src=", "href=", "url(", "<script", "@import"}) {
      EXPECT_THAT(page, Not(HasSubstr(outside))) << kernel;
    }
    const auto count = [&](std::string_view what) {
      int n = 0;
      for (size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++n;
      return n;
    };
    for (const char* element : {"table", "div", "svg", "title", "p", "h2", "text"}) {
      EXPECT_EQ(count(fmt::format("<{}>", element)) + count(fmt::format("<{} ", element)),
                count(fmt::format("</{}>", element)))
          << kernel << " " << element;
    }
    EXPECT_THAT(page, HasSubstr("<td class=name"));
  }
}

TEST(Html, NamesFromOutsideAreText) {
  const std::string page = to_html(made_up(1, "<b>&.cc"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;&amp;.cc:1"));
  EXPECT_THAT(page, Not(HasSubstr("<b>&")));
}

TEST(Diff, SaysWhatChangedAndWhere) {
  const Diff diff = compare(made_up(1), made_up(4));
  EXPECT_EQ(diff.totals[0].name, "cycles");
  EXPECT_EQ(diff.totals[0].before, 3);
  EXPECT_EQ(diff.totals[0].after, 6);
  ASSERT_FALSE(diff.lines.empty());
  EXPECT_EQ(diff.lines[0].name, "k.cc:2");
  EXPECT_EQ(diff.lines[0].by(), 3);
  EXPECT_EQ(diff.lines[1].by(), 0);
  const std::string text = to_text(diff, 10);
  EXPECT_THAT(text, HasSubstr("k.cc:2"));
  EXPECT_THAT(text, HasSubstr("+100.0 %  cycles"));
  EXPECT_THAT(text, Not(HasSubstr("k.cc:1")));  // unchanged
  EXPECT_THAT(text, HasSubstr("instructions issued: no difference"));
}

TEST(Diff, ALineOfOneSideOnlyIsAbsentInTheOther) {
  const auto json = to_json(compare(made_up(1, "old.cc"), made_up(1, "new.cc")));
  EXPECT_EQ(json["format"], 1);
  int absent = 0;
  for (const auto& line : json["lines"]) {
    if (line["name"] == "old.cc:1") absent += line["after"].is_null();
    if (line["name"] == "new.cc:1") absent += line["before"].is_null();
  }
  EXPECT_EQ(absent, 2);
}

TEST(Diff, OfAKernelWithItselfIsEmpty) {
  const Report r = report("all_reduce");
  for (const Change& change : compare(r, r).lines) EXPECT_EQ(change.by(), 0);
  EXPECT_THAT(to_text(compare(r, r), 10), HasSubstr("total: no difference"));
}

}  // namespace
}  // namespace gridless::bundles
