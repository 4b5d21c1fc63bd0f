// decode_attention: every instruction set against the reference, and the reference against a
// softmax in double precision over all tokens at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gridless/base/numerics.h"
#include "tests/cpu/random.h"

namespace gridless::cpu {
namespace {

struct Shape {
  int64_t groups, heads, head_dim, rows, max_pages;
};

float value(uint16_t bits) { return to_f32(bf16{bits}); }

// Every row is a sequence of its own, with scattered pages; every fifth row is inactive.
struct Problem {
  Problem(const Shape& s, uint32_t seed) : shape(s) {
    Random random(seed);
    width = s.heads * s.head_dim;
    stride = (width + kLanes - 1) / kLanes * kLanes;
    const int64_t page_count = s.rows * s.max_pages;
    qkv.resize(static_cast<size_t>((s.groups + 2) * s.rows * stride));
    for (uint16_t& e : qkv) e = to_bf16(random.normal()).bits;
    cache.resize(static_cast<size_t>(page_count * 2 * kPageTokens * stride));
    for (uint16_t& e : cache) e = to_bf16(random.normal()).bits;
    pages.resize(static_cast<size_t>(page_count));
    for (int64_t i = 0; i < page_count; ++i) {
      pages[static_cast<size_t>(i)] = static_cast<int32_t>(page_count - 1 - i);
    }
    rows.resize(static_cast<size_t>(4 * s.rows));
    for (int64_t r = 0; r < s.rows; ++r) {
      rows[static_cast<size_t>(s.rows + r)] = static_cast<int32_t>(s.rows - 1 - r);
      const int64_t last = s.max_pages * kPageTokens - 1;
      const int64_t position = r == 0 ? last : r == 1 ? 0 : random.below(last + 1);
      rows[static_cast<size_t>(2 * s.rows + r)] = static_cast<int32_t>(position);
      rows[static_cast<size_t>(3 * s.rows + r)] = r % 5 != 4;
    }
  }

  int64_t out_panels() const { return (shape.groups * width + kLanes - 1) / kLanes; }

  std::vector<uint16_t> run(const KernelTable& table) const {
    std::vector<uint16_t> out(static_cast<size_t>(out_panels() * shape.rows * kLanes), 0x5555);
    table.decode_attention({.qkv = qkv.data(),
                            .cache = cache.data(),
                            .row_table = rows.data(),
                            .pages = pages.data(),
                            .out = out.data(),
                            .groups = shape.groups,
                            .heads = shape.heads,
                            .head_dim = shape.head_dim,
                            .rows = shape.rows,
                            .width_stride = stride,
                            .max_pages = shape.max_pages,
                            .scale = 1 / std::sqrt(static_cast<float>(shape.head_dim))});
    return out;
  }

  Shape shape;
  int64_t width, stride;
  std::vector<uint16_t> qkv, cache;
  std::vector<int32_t> rows, pages;
};

constexpr Shape kShapes[] = {{3, 3, 64, 3, 2},  {1, 1, 32, 6, 1}, {4, 2, 128, 2, 3},
                             {8, 1, 64, 7, 2},  {5, 2, 80, 2, 1}, {2, 3, 20, 16, 2},
                             {1, 2, 256, 1, 1}, {7, 1, 8, 8, 1}};

// 2 bf16 ulp of the largest element of the row: 2^-6 of it, at most.
double tolerance(const std::vector<uint16_t>& row) {
  float largest = 0;
  for (uint16_t e : row) largest = std::max(largest, std::abs(value(e)));
  return 0x1p-6 * largest;
}

class Attention : public testing::TestWithParam<Isa> {};

TEST_P(Attention, AgreesWithTheReference) {
  uint32_t seed = 1;
  for (const Shape& shape : kShapes) {
    const Problem problem(shape, ++seed);
    const std::vector<uint16_t> expected = problem.run(kernels(Isa::kBaseline));
    const std::vector<uint16_t> actual = problem.run(kernels(GetParam()));
    for (int64_t r = 0; r < shape.rows; ++r) {
      const std::vector<uint16_t> e = take_row(expected, r, shape.rows);
      const std::vector<uint16_t> a = take_row(actual, r, shape.rows);
      for (size_t i = 0; i < e.size(); ++i) {
        ASSERT_NEAR(value(e[i]), value(a[i]), tolerance(e))
            << "dim " << shape.head_dim << " row " << r << " lane " << i;
      }
    }
  }
}

TEST_P(Attention, ARowDoesNotDependOnTheOthers) {
  const Problem all({3, 3, 64, 64, 2}, 9);
  const std::vector<uint16_t> expected = all.run(kernels(GetParam()));
  for (int64_t r = 0; r < 64; ++r) {
    Problem one = all;
    one.shape.rows = 1;
    one.qkv.clear();
    for (int64_t part = 0; part < 5; ++part) {
      const auto begin = all.qkv.begin() + (part * 64 + r) * all.stride;
      one.qkv.insert(one.qkv.end(), begin, begin + all.stride);
    }
    one.rows.clear();
    for (int64_t i = 0; i < 4; ++i) one.rows.push_back(all.rows[static_cast<size_t>(i * 64 + r)]);
    EXPECT_TRUE(same_bits(take_row(expected, r, 64), one.run(kernels(GetParam())))) << r;
  }
}

TEST(AttentionReference, IsASoftmax) {
  const Problem p({2, 2, 16, 5, 3}, 4);
  const std::vector<uint16_t> out = p.run(kernels(Isa::kBaseline));
  const auto at = [&](int64_t kind, int64_t slot, int64_t t, int64_t lane) -> double {
    const int64_t page = p.pages[static_cast<size_t>(slot * 3 + t / kPageTokens)];
    const int64_t row = (page * 2 + kind) * kPageTokens + t % kPageTokens;
    return value(p.cache[static_cast<size_t>(row * p.stride + lane)]);
  };
  for (int64_t r = 0; r < 5; ++r) {
    const std::vector<uint16_t> got = take_row(out, r, 5);
    const int64_t slot = p.rows[static_cast<size_t>(5 + r)];
    const int64_t n = p.rows[static_cast<size_t>(10 + r)] + 1;
    for (int64_t g = 0; g < 2; ++g) {
      for (int64_t j = 0; j < 2; ++j) {
        std::vector<double> weight(static_cast<size_t>(n));
        double sum = 0;
        for (int64_t t = 0; t < n; ++t) {
          double score = 0;
          for (int64_t i = 0; i < 16; ++i) {
            const int64_t lane = i < 8 ? j * 8 + i : 16 + j * 8 + i - 8;
            const size_t q = static_cast<size_t>((g * 5 + r) * p.stride + lane);
            score += value(p.qkv[q]) * at(0, slot, t, lane);
          }
          sum += weight[static_cast<size_t>(t)] = std::exp(score / 4);
        }
        for (int64_t i = 0; i < 16; ++i) {
          double expected = 0;
          for (int64_t t = 0; t < n; ++t) {
            expected += weight[static_cast<size_t>(t)] / sum * at(1, slot, t, j * 16 + i);
          }
          const bool active = p.rows[static_cast<size_t>(15 + r)] != 0;
          ASSERT_NEAR(active ? expected : 0.0, value(got[static_cast<size_t>(g * 32 + j * 16 + i)]),
                      tolerance(got));
        }
      }
    }
    for (size_t i = 64; i < got.size(); ++i) ASSERT_EQ(got[i], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Attention, testing::ValuesIn(vector_isas()),
                         [](const auto& info) { return std::string(isa_name(info.param)); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Attention);

}  // namespace
}  // namespace gridless::cpu
