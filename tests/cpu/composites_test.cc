// The composites between the products: every instruction set against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gridless/base/cpu_features.h"
#include "gridless/base/numerics.h"
#include "tests/cpu/random.h"

namespace gridless::cpu {
namespace {

std::vector<float> normals(int64_t n, uint32_t seed) {
  Random random(seed);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = random.normal();
  return v;
}

float value(uint16_t bits) { return to_f32(bf16{bits}); }

// Elements differ by at most `ulps` steps of bf16 (numbers of one sign are ordered as their bits).
void expect_ulps(const std::vector<uint16_t>& expected, const std::vector<uint16_t>& actual,
                 int ulps) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto order = [](uint16_t b) { return b & 0x8000 ? -(b & 0x7fff) : int{b}; };
    ASSERT_LE(std::abs(order(expected[i]) - order(actual[i])), ulps)
        << i << ": expected " << value(expected[i]) << ", got " << value(actual[i]);
  }
}

class Composites : public testing::TestWithParam<Isa> {
 protected:
  const KernelTable& table() const { return kernels(GetParam()); }
  const KernelTable& reference() const { return kernels(Isa::kBaseline); }
};

constexpr int64_t kRows[] = {1, 2, 3, 4, 7, 8, 16, 64};

TEST_P(Composites, RmsNorm) {
  for (const int64_t rows : kRows) {
    for (const int64_t width : {64, 128, 576, 2048}) {
      const int64_t panels = (width + kLanes - 1) / kLanes;
      std::vector<float> x = normals(panels * rows * kLanes, 5);
      for (size_t i = 0; i < x.size(); ++i) {
        const int64_t at = static_cast<int64_t>(i);
        if (at / (rows * kLanes) * kLanes + at % kLanes >= width) x[i] = 0;
      }
      const std::vector<float> w = normals(panels * kLanes, 6);
      std::vector<uint16_t> expected(x.size()), actual(x.size());
      RmsNormArgs args{.x = x.data(),
                       .w = w.data(),
                       .out = expected.data(),
                       .panels = panels,
                       .rows = rows,
                       .width = width,
                       .eps = 1e-5f};
      reference().rms_norm(args);
      args.out = actual.data();
      table().rms_norm(args);
      expect_ulps(expected, actual, 1);
      // A row does not depend on the others.
      const int64_t row = rows / 2;
      const std::vector<float> one = take_row(x, row, rows);
      std::vector<uint16_t> alone(one.size());
      args.x = one.data(), args.out = alone.data(), args.rows = 1;
      table().rms_norm(args);
      EXPECT_TRUE(same_bits(take_row(actual, row, rows), alone));
    }
  }
}

TEST_P(Composites, QkvRopeToTheBit) {
  for (const int64_t rows : kRows) {
    for (const auto& [groups, width] :
         {std::pair<int64_t, int64_t>{3, 192}, {1, 64}, {2, 36}, {8, 128}, {5, 320}}) {
      const int64_t half_stride = (width / 2 + 127) / 128 * 128;
      const int64_t stride = (width + 127) / 128 * 128;
      const int64_t panels = ((groups + 2) * width + 127) / 128;
      const std::vector<float> y = normals(panels * rows * kLanes, 8);
      const std::vector<float> cos = normals(rows * half_stride, 9);
      const std::vector<float> sin = normals(rows * half_stride, 10);
      std::vector<uint16_t> expected(static_cast<size_t>((groups + 2) * rows * stride), 0x5555);
      std::vector<uint16_t> actual = expected;
      QkvRopeArgs args{.y = y.data(),
                       .cos = cos.data(),
                       .sin = sin.data(),
                       .out = expected.data(),
                       .groups = groups,
                       .width = width,
                       .rows = rows,
                       .half_stride = half_stride,
                       .width_stride = stride};
      reference().qkv_rope(args);
      args.out = actual.data();
      table().qkv_rope(args);
      EXPECT_TRUE(same_bits(expected, actual)) << "rows " << rows << " width " << width;
    }
  }
}

// Distance of the double-precision value: the reference's exp is as inexact as ours.
TEST_P(Composites, SwigluOverTheWholeRange) {
  for (const int64_t rows : kRows) {
    const int64_t panels = 6, n = panels / 2 * rows * kLanes;
    std::vector<float> y = normals(2 * n, 12);
    for (int64_t i = 0; i < n; ++i) y[static_cast<size_t>(i)] *= 25;  // exp(-g) from 0 to infinity
    y[0] = -88.9f, y[1] = 95, y[2] = -1000, y[3] = 0, y[4] = -87.5f, y[5] = 1e30f;
    std::vector<uint16_t> actual(static_cast<size_t>(n));
    table().swiglu({.y = y.data(), .out = actual.data(), .panels = panels, .rows = rows});
    for (int64_t i = 0; i < n; ++i) {
      const double gate = y[static_cast<size_t>(i)], up = y[static_cast<size_t>(n + i)];
      const double exact = gate / (1 + std::exp(-gate)) * up;
      const double got = value(actual[static_cast<size_t>(i)]);
      // One bf16 ulp (2^-7 of the power below), and 2^-120 for results that f32 flushes on the way.
      ASSERT_LE(std::abs(got - exact), std::abs(exact) * 0x1p-7 + 0x1p-110) << gate << " " << up;
    }
    std::vector<uint16_t> expected(static_cast<size_t>(n));
    reference().swiglu({.y = y.data(), .out = expected.data(), .panels = panels, .rows = rows});
    for (int64_t i = 6; i < n; ++i) {
      if (std::abs(value(expected[static_cast<size_t>(i)])) < 1e-30f) continue;
      ASSERT_LE(std::abs(expected[static_cast<size_t>(i)] - actual[static_cast<size_t>(i)]), 1);
    }
  }
}

TEST_P(Composites, AddIntoToTheBit) {
  std::vector<float> expected = normals(3 * 7 * kLanes, 14), actual = expected;
  const std::vector<float> y = normals(3 * 7 * kLanes, 15);
  reference().add_into({.x = expected.data(), .y = y.data(), .panels = 3, .rows = 7});
  table().add_into({.x = actual.data(), .y = y.data(), .panels = 3, .rows = 7});
  EXPECT_TRUE(same_bits(expected, actual));
}

TEST_P(Composites, KvAppendWritesActiveRowsOnly) {
  const int64_t rows = 3, groups = 2, stride = 128, slots = 2, max_pages = 2;
  std::vector<uint16_t> qkv(static_cast<size_t>((groups + 2) * rows * stride));
  std::iota(qkv.begin(), qkv.end(), uint16_t{1});
  const std::vector<int32_t> table_rows = {0, 0, 0, 1, 0, 1, 130, 5, 127, 1, 0, 1};
  const std::vector<int32_t> pages = {0, 2, 3, 1};
  std::vector<uint16_t> expected(static_cast<size_t>(4 * 2 * kPageTokens * stride));
  std::vector<uint16_t> actual = expected;
  for (auto [kernels, cache] : {std::pair{&reference(), &expected}, {&table(), &actual}}) {
    kernels->kv_append({.qkv = qkv.data(),
                        .cache = cache->data(),
                        .row_table = table_rows.data(),
                        .pages = pages.data(),
                        .groups = groups,
                        .rows = rows,
                        .width_stride = stride,
                        .max_pages = max_pages});
  }
  EXPECT_EQ(expected, actual);
  // Row 0: slot 1, position 130: token 2 of page pages[1][1] = 1. Row 2: slot 1, position 127.
  const auto at = [&](int64_t page, int64_t kind, int64_t token) {
    return actual[static_cast<size_t>(((page * 2 + kind) * kPageTokens + token) * stride)];
  };
  EXPECT_EQ(at(1, 0, 2), qkv[static_cast<size_t>(groups * rows * stride)]);
  EXPECT_EQ(at(3, 1, 127), qkv[static_cast<size_t>(((groups + 1) * rows + 2) * stride)]);
  EXPECT_EQ(at(0, 0, 5), 0);
  EXPECT_EQ(std::count_if(actual.begin(), actual.end(), [](uint16_t x) { return x != 0; }),
            2 * 2 * stride);
  EXPECT_EQ(slots * max_pages, static_cast<int64_t>(pages.size()));
}

struct TopkCase {
  int64_t rows, k, panels;
};

TEST_P(Composites, TopkToTheBitWithTies) {
  for (const auto& [rows, k, panels] : {TopkCase{1, 1, 5}, {1, 8, 12}, {3, 4, 40}, {16, 64, 90}}) {
    const size_t slots = static_cast<size_t>(k * rows * kLanes);
    const float none = -std::numeric_limits<float>::infinity();
    std::vector<float> vals[2], ids[2], out_vals[2];
    std::vector<int32_t> out_ids[2];
    std::vector<float> logits = normals(panels * rows * kLanes, 20);
    for (float& l : logits) l = std::round(l * 8) / 8;  // many ties
    const int64_t base = 256, limit = base + panels * kLanes - 70;
    const KernelTable* tables[] = {&reference(), &table()};
    for (int i = 0; i < 2; ++i) {
      vals[i].assign(slots, none);
      ids[i].assign(slots, 0);
      out_vals[i].resize(static_cast<size_t>(rows * kLanes));
      out_ids[i].resize(static_cast<size_t>(rows * kLanes));
      // In two calls: the second goes on from the first.
      const int64_t first = panels / 2;
      tables[i]->topk_insert({.logits = logits.data(),
                              .vals = vals[i].data(),
                              .ids = ids[i].data(),
                              .base = base,
                              .panels = first,
                              .rows = rows,
                              .k = k,
                              .limit = limit});
      tables[i]->topk_insert({.logits = logits.data() + first * rows * kLanes,
                              .vals = vals[i].data(),
                              .ids = ids[i].data(),
                              .base = base + first * kLanes,
                              .panels = panels - first,
                              .rows = rows,
                              .k = k,
                              .limit = limit});
      tables[i]->topk_final({.vals = vals[i].data(),
                             .ids = ids[i].data(),
                             .out_vals = out_vals[i].data(),
                             .out_ids = out_ids[i].data(),
                             .rows = rows,
                             .k = k});
    }
    EXPECT_TRUE(same_bits(vals[0], vals[1]));
    EXPECT_TRUE(same_bits(ids[0], ids[1]));
    EXPECT_TRUE(same_bits(out_vals[0], out_vals[1]));
    EXPECT_TRUE(same_bits(out_ids[0], out_ids[1]));
    // Against a plain sort of the row's logits.
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<float> one = take_row(logits, row, rows);
      std::vector<int32_t> order(static_cast<size_t>(limit - base));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
        return one[static_cast<size_t>(a)] > one[static_cast<size_t>(b)];
      });
      for (int64_t i = 0; i < k; ++i) {
        const size_t at = static_cast<size_t>(row * kLanes + i);
        ASSERT_EQ(out_ids[1][at], order[static_cast<size_t>(i)] + base) << row << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Composites, testing::ValuesIn(vector_isas()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Composites);

}  // namespace
}  // namespace gridless::cpu
