// Every lesson of the gallery computes what its own plain C++ says, on the emulator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

#include "tests/gallery/run_lesson.h"

namespace gridless::kernels {
namespace {

struct Case {
  std::string lesson;
  std::map<std::string, std::string> options;
};

std::string label(const Case& c) {
  std::string s = c.lesson;
  for (const auto& [k, v] : c.options) s += "_" + k + v;
  return s;
}

void PrintTo(const Case& c, std::ostream* out) { *out << label(c); }

void expect_close(const Lesson& lesson, const PerCore& got, const PerCore& want) {
  for (size_t c = 0; c < want.size(); ++c) {
    ASSERT_EQ(got[c].size(), want[c].size());
    for (size_t i = 0; i < want[c].size(); ++i) {
      ASSERT_EQ(got[c][i].shape, want[c][i].shape);
      double worst = 0;
      size_t at = 0;
      for (size_t j = 0; j < want[c][i].values.size(); ++j) {
        const double w = want[c][i].values[j], g = got[c][i].values[j];
        const double excess = std::abs(g - w) - lesson.absolute - lesson.relative * std::abs(w);
        if (!(excess <= 0) && (at == 0 || !(excess <= worst))) worst = excess, at = j;
      }
      EXPECT_TRUE(worst <= 0) << "core " << c << ", result " << i << ", element " << at << ": got "
                              << got[c][i].values[at] << ", want " << want[c][i].values[at];
    }
  }
}

class GalleryTest : public testing::TestWithParam<Case> {};

TEST_P(GalleryTest, ComputesItsReference) {
  const auto lesson = find_lesson(GetParam().lesson);
  ASSERT_TRUE(lesson) << lesson.error().message;
  for (uint64_t seed : {1, 2}) {
    LessonRun run;
    ASSERT_TRUE(run_lesson(**lesson, GetParam().options, seed, run));
    expect_close(**lesson, run.got, run.want);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Lesson& l : lessons()) all.push_back({l.name, {}});
  // The edges: one tile, a ring deeper than the stream, a page that is full, more cores.
  const std::vector<Case> more = {
      {"01_add", {{"rows", "1"}}},
      {"02_dma_copy", {{"blocks", "1"}}},
      {"03_loop_and_slices", {{"tiles", "1"}}},
      {"04_softmax_rows", {{"columns", "128"}}},
      {"05_matmul", {{"k", "256"}}},
      {"07_double_buffer", {{"tiles", "1"}}},
      {"07_double_buffer", {{"tiles", "2"}}},
      {"08_gemv_stream", {{"depth", "1"}, {"k", "128"}}},
      {"08_gemv_stream", {{"depth", "8"}, {"k", "128"}}},
      {"09_rms_norm", {{"width", "576"}}},
      {"11_paged_attention", {{"length", "1"}}},
      {"11_paged_attention", {{"length", "128"}}},
      {"11_paged_attention", {{"length", "129"}}},
      {"12_top_k", {{"k", "1"}}},
      {"13_while", {{"tiles", "1"}}},
      {"14_barrier_and_shift", {{"cores", "4"}}},
      {"14_barrier_and_shift", {{"cores", "4"}, {"hops", "1"}}},
      {"15_all_reduce", {{"cores", "1"}}},
      {"15_all_reduce", {{"cores", "4"}}},
      {"15_all_reduce", {{"cores", "8"}}},
      {"17_in_place_state", {{"rows", "1"}}},
      {"18_named_source", {{"experts", "8"}, {"k", "8"}}},
      {"19_layers", {{"cores", "1"}}},
      {"19_layers", {{"cores", "5"}, {"layers", "1"}, {"chunks", "3"}, {"tiles", "2"}}},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Lessons, GalleryTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return label(info.param); });

TEST(Gallery, NamesAreNumberedAndFound) {
  int number = 0;
  for (const Lesson& l : lessons()) {
    EXPECT_EQ(std::stoi(l.name.substr(0, 2)), ++number) << l.name;
    EXPECT_EQ(*find_lesson(l.name.substr(3)), &l);
    EXPECT_EQ(*find_lesson(l.name.substr(0, 2)), &l);
  }
  EXPECT_THAT(find_lesson("99_none").error().message, testing::HasSubstr("01_add"));
}

TEST(Gallery, OptionsAreChecked) {
  const Lesson& matmul = **find_lesson("matmul");
  EXPECT_THAT(matmul.with({{"kk", "1"}}).error().message, testing::HasSubstr("has no option kk"));
  EXPECT_THAT(matmul.with({{"k", "x"}}).error().message, testing::HasSubstr("not a whole number"));
  EXPECT_THAT(matmul.with({{"k", "300"}}).error().message, testing::HasSubstr("multiple of 256"));
  EXPECT_THAT((*find_lesson("collectives"))->with({{"kind", "all"}}).error().message,
              testing::HasSubstr("one of all-gather, reduce-scatter, all-reduce"));
}

}  // namespace
}  // namespace gridless::kernels
