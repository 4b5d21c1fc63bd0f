// The delta rule in chunks against the recurrence, row by row in double precision.
#include "gridless/blocks/delta_chunk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "gridless/blocks/activations.h"
#include "tests/cpu/random.h"
#include "tests/cpu/run_program.h"

namespace gridless::cpu {
namespace {

using namespace blocks;  // NOLINT: kernels read in the vocabulary of the blocks

struct Problem {
  int64_t rows = 0, key_dim = 0, value_dim = 0;
  std::vector<float> q, k, v, beta, g, state;
};

Problem random_problem(int64_t rows, int64_t key_dim, int64_t value_dim, Random& random) {
  Problem p{rows, key_dim, value_dim, {}, {}, {}, {}, {}, {}};
  const auto unit_rows = [&] {
    std::vector<float> all(static_cast<size_t>(rows * key_dim));
    for (float& x : all) x = random.normal();
    for (int64_t r = 0; r < rows; ++r) {
      float* row = &all[static_cast<size_t>(r * key_dim)];
      double square = 0;
      for (int64_t i = 0; i < key_dim; ++i) square += double{row[i]} * double{row[i]};
      for (int64_t i = 0; i < key_dim; ++i)
        row[i] = static_cast<float>(double{row[i]} / std::sqrt(square));
    }
    return all;
  };
  p.q = unit_rows(), p.k = unit_rows();
  p.v.resize(static_cast<size_t>(rows * value_dim));
  p.state.resize(static_cast<size_t>(key_dim * value_dim));
  for (auto* all : {&p.v, &p.state})
    for (float& x : *all) x = random.normal();
  for (int64_t r = 0; r < rows; ++r) {
    p.beta.push_back(1 / (1 + std::exp(-random.normal())));
    p.g.push_back(-std::abs(random.normal()) * (random.below(8) == 0 ? 20.0f : 0.1f));
  }
  return p;
}

struct Answer {
  std::vector<double> outputs, state;
};

Answer recurrence(const Problem& p) {
  const auto keys = static_cast<size_t>(p.key_dim), values = static_cast<size_t>(p.value_dim);
  Answer a{{}, {p.state.begin(), p.state.end()}};
  for (size_t r = 0; r < static_cast<size_t>(p.rows); ++r) {
    const double decay = std::exp(double{p.g[r]});
    for (double& s : a.state) s *= decay;
    for (size_t c = 0; c < values; ++c) {
      double seen = 0, out = 0;
      for (size_t i = 0; i < keys; ++i) seen += double{p.k[r * keys + i]} * a.state[i * values + c];
      const double u = double{p.beta[r]} * (double{p.v[r * values + c]} - seen);
      for (size_t i = 0; i < keys; ++i) {
        double& s = a.state[i * values + c];
        s += double{p.k[r * keys + i]} * u;
        out += double{p.q[r * keys + i]} * s;
      }
      a.outputs.push_back(out);
    }
  }
  return a;
}

// Every product rounds its terms and sums to f32, 2^-24 of at most key_dim + R of them, and there
// are three one after the other; the triangular system hands errors on with factors of at most 1.
void expect_close(const Problem& p) {
  Kernel k("delta_chunk");
  const auto input = [&](const char* name, int64_t a, int64_t b) {
    return k.input(name, Elem::kF32, {a, b});
  };
  const Ref in[] = {input("q", p.rows, p.key_dim),   input("k", p.rows, p.key_dim),
                    input("v", p.rows, p.value_dim), input("beta", p.rows, 1),
                    input("g", p.rows, 1),           input("state", p.key_dim, p.value_dim)};
  const Ref outputs = k.output("outputs", Elem::kF32, {p.rows, p.value_dim});
  const Ref state = k.output("next", Elem::kF32, {p.key_dim, p.value_dim});
  k.scope([&] {
    std::vector<Vec> v;
    for (const Ref& r : in) v.push_back(copy_in(k, r).load());
    const DeltaChunk chunk = delta_chunk(v[0], v[1], v[2], v[3], v[4], v[5]);
    const auto out = [&](Vec x, Ref to) {
      const Ref local = k.vmem(Elem::kF32, to.shape());
      local.store(x);
      k.copy(local, to, k.dma_sem()).wait();
    };
    out(chunk.outputs, outputs);
    out(chunk.state, state);
  });
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  const Ran ran = run_emulated(*program,
                               {{bytes_of(p.q), bytes_of(p.k), bytes_of(p.v), bytes_of(p.beta),
                                 bytes_of(p.g), bytes_of(p.state)}},
                               1);
  ASSERT_TRUE(ran.diagnostics.empty()) << to_string(ran.diagnostics);
  const Answer expected = recurrence(p);
  const auto near = [&](const std::vector<double>& right, const Bytes& bytes) {
    const auto got = values_of<float>(bytes);
    ASSERT_EQ(right.size(), got.size());
    double largest = 1, worst = 0;
    for (size_t i = 0; i < right.size(); ++i) {
      largest = std::max(largest, std::abs(right[i]));
      worst = std::max(worst, std::abs(right[i] - double{got[i]}));
    }
    const auto terms = static_cast<double>(p.key_dim + p.rows);
    EXPECT_LE(worst, 3 * terms * 0x1p-24 * largest);
  };
  near(expected.outputs, ran.results[0][0]);
  near(expected.state, ran.results[0][1]);
}

TEST(DeltaChunk, IsTheRecurrence) {
  for (const int64_t rows : {8, 16, 32, 64}) {
    for (const auto& [keys, values] : {std::pair<int64_t, int64_t>{16, 32}, {128, 128}}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << keys << " x " << values);
      Random random(static_cast<uint32_t>(rows * keys));
      expect_close(random_problem(rows, keys, values, random));
    }
  }
}

// The same key in every row, learnt whole and never forgotten: powers of A grow, the answer is the
// last value.
TEST(DeltaChunk, KeysThatRepeat) {
  Random random(5);
  Problem p = random_problem(64, 32, 16, random);
  for (size_t i = 0; i < p.k.size(); ++i) p.k[i] = p.q[i] = p.k[i % 32];
  std::ranges::fill(p.beta, 1.0f);
  std::ranges::fill(p.g, 0.0f);
  expect_close(p);
}

TEST(DeltaChunk, RowsOfNothingChangeNothing) {
  Random random(6);
  Problem p = random_problem(16, 16, 16, random);
  const auto clear = [&](int64_t first, int64_t end) {
    for (int64_t r = first; r < end; ++r) {
      std::fill_n(p.k.begin() + r * 16, 16, 0.0f);
      p.beta[static_cast<size_t>(r)] = p.g[static_cast<size_t>(r)] = 0;
    }
  };
  clear(0, 3);
  clear(9, 16);
  expect_close(p);
}

}  // namespace
}  // namespace gridless::cpu
