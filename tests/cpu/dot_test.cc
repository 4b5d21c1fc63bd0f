// The dot products of every instruction set give the bits of the reference, for any number of rows.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gridless/base/cpu_features.h"
#include "gridless/base/numerics.h"
#include "tests/cpu/random.h"

namespace gridless::cpu {
namespace {

struct Format {
  const char* name;
  void (*KernelTable::*dot)(const DotArgs&);
  int64_t inputs_per_word;
  int64_t groups_per_scale;  // 0: no scales
};

constexpr Format kFormats[] = {{"bf16", &KernelTable::dot_bf16, 2, 0},
                               {"q8", &KernelTable::dot_q8, 4, 2},
                               {"q4", &KernelTable::dot_q4, 8, 2},
                               {"q4m", &KernelTable::dot_q4m, 8, 1}};

struct Shape {
  int64_t width;  // inputs of x, a multiple of 32
  int64_t k0, kp, panels, rows;
  bool accumulate;
};

// A random problem; the tile has exactly the words of the chunk, so that a sanitizer sees a kernel
// that reads beyond it.
struct Problem {
  Problem(const Format& format, const Shape& s, uint32_t seed) : shape(s) {
    Random random(seed);
    const int64_t x_panels = (s.width + kLanes - 1) / kLanes;
    x.resize(static_cast<size_t>(x_panels * s.rows * kLanes));
    for (uint16_t& e : x) e = to_bf16(random.normal()).bits;
    const int64_t codes = s.panels * s.kp / format.inputs_per_word * kLanes;
    const int64_t per = format.groups_per_scale;
    const int64_t scales = per == 0 ? 0 : s.panels * ((s.kp / 32 + per - 1) / per) * kLanes;
    tile.resize(static_cast<size_t>(codes + scales));
    for (size_t i = 0; i < tile.size(); ++i) {
      if (per == 0) {
        tile[i] = to_bf16(random.normal()).bits | uint32_t{to_bf16(random.normal()).bits} << 16;
      } else if (static_cast<int64_t>(i) < codes) {
        tile[i] = random.word();
      } else {
        tile[i] = to_f16(random.normal()).bits | uint32_t{to_f16(random.normal()).bits} << 16;
      }
    }
    start.resize(static_cast<size_t>(s.panels * s.rows * kLanes));
    for (float& e : start) e = random.normal();
  }

  std::vector<float> run(const KernelTable& table, const Format& format) const {
    std::vector<float> out = start;
    (table.*format.dot)({.x = x.data(),
                         .tile = tile.data(),
                         .out = out.data(),
                         .k0 = shape.k0,
                         .kp = shape.kp,
                         .panels = shape.panels,
                         .rows = shape.rows,
                         .accumulate = shape.accumulate});
    return out;
  }

  Shape shape;
  std::vector<uint16_t> x;
  std::vector<uint32_t> tile;
  std::vector<float> start;
};

class Dot : public testing::TestWithParam<std::tuple<Isa, int>> {
 protected:
  const KernelTable& table() const { return kernels(std::get<0>(GetParam())); }
  const Format& format() const { return kFormats[std::get<1>(GetParam())]; }
};

TEST_P(Dot, GivesTheBitsOfTheReference) {
  uint32_t seed = 1;
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 64}) {
    for (const Shape& s :
         {Shape{32, 0, 32, 1, rows, false}, Shape{96, 0, 96, 2, rows, true},
          Shape{576, 32, 160, 1, rows, true}, Shape{416, 224, 192, 3, rows, false}}) {
      const Problem problem(format(), s, ++seed);
      EXPECT_TRUE(
          same_bits(problem.run(kernels(Isa::kBaseline), format()), problem.run(table(), format())))
          << "rows " << rows << " k0 " << s.k0 << " kp " << s.kp << " panels " << s.panels;
    }
  }
}

TEST_P(Dot, ARowDoesNotDependOnTheOthers) {
  const int64_t rows = 64;
  const Problem all(format(), {.width = 320, .k0 = 96, .kp = 224, .panels = 2, .rows = rows}, 7);
  const std::vector<float> expected = all.run(table(), format());
  for (int64_t row = 0; row < rows; ++row) {
    Problem one = all;
    one.shape.rows = 1;
    one.x = take_row(all.x, row, rows);
    one.start = take_row(all.start, row, rows);
    EXPECT_TRUE(same_bits(take_row(expected, row, rows), one.run(table(), format()))) << row;
  }
}

TEST_P(Dot, PartsAddUpToTheWhole) {
  // Two parts of a panel, one call each: only the layout of the tile differs from one call.
  Problem whole(format(), {.width = 256, .kp = 256, .panels = 1, .rows = 3}, 11);
  const std::vector<float> expected = whole.run(table(), format());
  Problem part = whole;
  part.shape.kp = 128;
  const int64_t codes = 128 / format().inputs_per_word * kLanes;
  const int64_t per = format().groups_per_scale;
  const int64_t scales = per == 0 ? 0 : 4 / per * kLanes;
  for (int64_t i = 0; i < 2; ++i) {
    part.tile.clear();
    const auto append = [&](int64_t from, int64_t n) {
      part.tile.insert(part.tile.end(), whole.tile.begin() + from, whole.tile.begin() + from + n);
    };
    append(i * codes, codes);
    append(2 * codes + i * scales, scales);
    part.shape.k0 = 128 * i;
    part.shape.accumulate = i > 0;
    part.start = part.run(table(), format());
  }
  EXPECT_TRUE(same_bits(expected, part.start));
}

TEST(DotReference, DecodesEveryFormat) {
  // One input of one: the output is the weight itself, for codes and scales written by hand.
  for (size_t f = 0; f < 4; ++f) {
    const Format& format = kFormats[f];
    Problem p(format, {.width = 64, .kp = 64, .panels = 1, .rows = 1}, 3);
    p.x.assign(p.x.size(), 0);
    const int64_t k = 45, lane = 100;
    p.x[k] = to_bf16(1.0f).bits;
    uint32_t* codes = p.tile.data() + lane;
    uint32_t* scales = codes + 64 / format.inputs_per_word * kLanes;
    const uint32_t half = to_f16(0.5f).bits, three = to_f16(3.0f).bits;
    const float expected[] = {-1.75f, -117 * 0.5f, (13 - 8) * 0.5f, 13 * 0.5f + 3.0f};
    if (f == 0) codes[k / 2 * kLanes] = uint32_t{to_bf16(-1.75f).bits} << 16;
    if (f == 1) codes[k / 4 * kLanes] = uint32_t{static_cast<uint8_t>(-117)} << 8;
    if (f >= 2) codes[k / 8 * kLanes] = 13u << 20;
    if (f == 1 || f == 2) scales[0] = half << 16;  // group 1 is the high half
    if (f == 3) {
      scales[0] = 0;
      scales[kLanes] = half | three << 16;
    }
    EXPECT_EQ(p.run(kernels(Isa::kBaseline), format)[lane], expected[f]) << format.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Dot,
                         testing::Combine(testing::ValuesIn(vector_isas()), testing::Range(0, 4)),
                         [](const auto& info) {
                           return std::string(isa_name(std::get<0>(info.param))) + "_" +
                                  kFormats[std::get<1>(info.param)].name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Dot);

}  // namespace
}  // namespace gridless::cpu
