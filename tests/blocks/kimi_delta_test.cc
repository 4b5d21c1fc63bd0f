// Kimi Delta Attention against the recurrence in double precision, over launches of several rows of
// which the host keeps some.
#include <cmath>

#include "gridless/blocks/gated_delta.h"
#include "tests/blocks/block_run.h"

namespace gridless::blocks {
namespace {

constexpr DeltaShape kShape{.key_heads = 3,
                            .value_heads = 3,
                            .key_dim = 24,
                            .value_dim = 24,
                            .eps = 1e-5,
                            .channel_decay = true};
constexpr int64_t kDim = kShape.key_dim, kHeads = kShape.key_heads, kWidth = kHeads * kDim;

struct Token {
  Floats q, k, v, z, f;  // [heads][dim]
  Floats b;              // [heads]
};

// All that is constant, by channel or as named.
struct Constants {
  Floats conv[3][kConvTaps];
  Floats rate, dt, norm;
};

class Oracle {
 public:
  explicit Oracle(const Constants& c) : c_(c), state_(kHeads * kDim * kDim) {}

  // The output of the next token.
  Floats next(const Token& t) {
    history_.push_back(t);
    Floats out;
    for (int64_t h = 0; h < kHeads; ++h) {
      const auto q = unit(convolved(0, h)), k = unit(convolved(1, h)), v = convolved(2, h);
      const double beta = sigmoid(t.b[static_cast<size_t>(h)]);
      double* s = state_.data() + h * kDim * kDim;
      std::vector<double> o(kDim);
      for (int64_t j = 0; j < kDim; ++j) {
        double predicted = 0;
        for (int64_t i = 0; i < kDim; ++i) {
          const auto channel = static_cast<size_t>(h * kDim + i);
          const double g = -5 * sigmoid(double{c_.rate[channel]} *
                                        (double{t.f[channel]} + double{c_.dt[channel]}));
          s[i * kDim + j] *= std::exp(g);
          predicted += k[static_cast<size_t>(i)] * s[i * kDim + j];
        }
        const double delta = beta * (v[static_cast<size_t>(j)] - predicted);
        for (int64_t i = 0; i < kDim; ++i) {
          s[i * kDim + j] += k[static_cast<size_t>(i)] * delta;
          o[static_cast<size_t>(j)] += q[static_cast<size_t>(i)] * s[i * kDim + j];
        }
      }
      double square = 0;
      for (double& x : o) {
        x = rounded(x / std::sqrt(static_cast<double>(kDim)));
        square += x * x;
      }
      for (int64_t j = 0; j < kDim; ++j) {
        const auto at = static_cast<size_t>(j);
        const double normed =
            rounded(o[at] / std::sqrt(square / kDim + 1e-5) * double{c_.norm[at]});
        const double open = rounded(sigmoid(t.z[static_cast<size_t>(h * kDim + j)]));
        out.push_back(rounded(normed * open));
      }
    }
    return out;
  }

 private:
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  static std::vector<double> unit(std::vector<double> v) {
    double square = 1e-6;
    for (const double x : v) square += x * x;
    for (double& x : v) x /= std::sqrt(square);
    return v;
  }
  std::vector<double> convolved(int which, int64_t h) const {
    std::vector<double> out;
    for (int64_t i = h * kDim; i < (h + 1) * kDim; ++i) {
      double sum = 0;
      for (int64_t t = 0; t < kConvTaps; ++t) {
        const int64_t at = static_cast<int64_t>(history_.size()) - kConvTaps + t;
        if (at < 0) continue;
        const Token& token = history_[static_cast<size_t>(at)];
        const Floats& x = which == 0 ? token.q : which == 1 ? token.k : token.v;
        sum +=
            double{x[static_cast<size_t>(i)]} * double{c_.conv[which][t][static_cast<size_t>(i)]};
      }
      out.push_back(rounded(sum * sigmoid(sum)));
    }
    return out;
  }

  const Constants& c_;
  std::vector<double> state_;
  std::vector<Token> history_;
};

Constants constants(std::mt19937& random) {
  Constants c;
  for (auto& part : c.conv)
    for (Floats& tap : part) tap = normals(random, kWidth, 0.5f);
  for (int64_t i = 0; i < kWidth; ++i) c.rate.push_back(0.2f + 0.1f * static_cast<float>(i / kDim));
  c.dt = normals(random, kWidth);
  c.norm = normals(random, kDim);
  return c;
}

Token token(std::mt19937& random) {
  const auto make = [&](int64_t n) { return rounded(normals(random, n)); };
  return {make(kWidth), make(kWidth), make(kWidth), make(kWidth), make(kWidth), make(kHeads)};
}

void append(Floats& to, const Floats& v) { to.insert(to.end(), v.begin(), v.end()); }
Floats padded(Floats v) {
  v.resize(static_cast<size_t>(round_to_lanes(static_cast<int64_t>(v.size()))));
  return v;
}

// The launch of `rows` rows; state goes from one to the next.
struct Launches {
  explicit Launches(const Constants& c) {
    for (int64_t t = 0; t < kConvTaps; ++t)
      for (const auto& part : c.conv) append(conv, padded(part[t]));
    for (const Floats* v : {&c.rate, &c.dt, &c.norm}) append(vectors, padded(*v));
    const auto zero = [](Shape s) {
      int64_t n = 4;
      for (const int64_t d : s) n *= d;
      return Bytes(static_cast<size_t>(n));
    };
    state = {zero(delta_matrix_shape(kShape)), zero(delta_columns_shape(kShape)),
             zero(delta_pending_shape(kShape))};
  }

  // Outputs by row.
  std::vector<Floats> run_rows(const std::vector<Token>& tokens, int32_t position, int32_t keep) {
    const auto rows = static_cast<int64_t>(tokens.size());
    const auto build = [&](Kernel& k) {
      const StepRows step = declare_rows(k, rows, 1, 1);
      const Ref kept = k.input("keep", Elem::kI32, {1}, Space::kSmem);
      const Ref y = k.input("y", Elem::kF32, {kShape.projection_panels(), rows, kLanes});
      const Ref decay = k.input("f", Elem::kF32, {kShape.key_panels(), rows, kLanes});
      const Ref taps = k.input("conv", Elem::kF32, {kConvTaps, kShape.conv_panels(), kLanes});
      const Ref rest = k.input("vectors", Elem::kF32, {kShape.vector_rows(), kLanes});
      const auto part = [&](const char* name, Shape s) {
        s.insert(s.begin(), 1);
        return k.inout(name, Elem::kF32, s);
      };
      const DeltaState all = {part("matrix", delta_matrix_shape(kShape)),
                              part("columns", delta_columns_shape(kShape)),
                              part("pending", delta_pending_shape(kShape))};
      const Ref out = k.output("out", Elem::kF32, {kShape.value_panels(), rows, kLanes});
      k.scope([&] {
        const RowRuns runs(step);
        const Ref mixed = activations(k, Elem::kBf16, kWidth, rows);
        const DeltaConstants local{copy_in(k, taps), copy_in(k, rest)};
        kimi_delta(copy_in(k, y), copy_in(k, decay), local, all, step, runs, kept, kShape, mixed);
        widen_out(k, mixed, out);
      });
    };
    std::vector<int32_t> table(static_cast<size_t>(kRowFields * rows)), pages(1);
    Floats parts[6];
    for (int64_t r = 0; r < rows; ++r) {
      table[static_cast<size_t>(kRowPosition * rows + r)] = position + static_cast<int32_t>(r);
      table[static_cast<size_t>(kRowActive * rows + r)] = 1;
      const Token& t = tokens[static_cast<size_t>(r)];
      int i = 0;
      for (const Floats* v : {&t.q, &t.k, &t.v, &t.z, &t.b, &t.f}) append(parts[i++], *v);
    }
    Floats y;
    for (int i = 0; i < 5; ++i) append(y, to_panels(parts[i], rows, i == 4 ? kHeads : kWidth));
    const std::vector<int32_t> keep_table = {keep};
    auto results = run(build, {bytes_of(table), bytes_of(pages), bytes_of(keep_table), bytes_of(y),
                               bytes_of(to_panels(parts[5], rows, kWidth)), bytes_of(conv),
                               bytes_of(vectors), state[0], state[1], state[2]});
    std::vector<Floats> out;
    if (results.size() != 4) return out;
    state.assign(results.begin(), results.begin() + 3);
    const Floats all = from_panels(values_of<float>(results[3]), rows, kWidth);
    for (int64_t r = 0; r < rows; ++r)
      out.emplace_back(all.begin() + r * kWidth, all.begin() + (r + 1) * kWidth);
    return out;
  }

  Floats conv, vectors;
  std::vector<Bytes> state;
};

TEST(KimiDelta, IsTheRecurrence) {
  std::mt19937 random(1);
  const Constants c = constants(random);
  std::vector<Token> tokens;
  for (int i = 0; i < 13; ++i) tokens.push_back(token(random));
  Oracle oracle(c);
  std::vector<Floats> want;
  for (const Token& t : tokens) want.push_back(oracle.next(t));
  // Launches of 1, 4 (of which 2 count: the others are wrong guesses), 1, 9 rows.
  Launches launches(c);
  std::vector<Floats> got = launches.run_rows({tokens[0]}, 0, 0);
  const auto go_on = [&](size_t from, size_t to, size_t wrong, int32_t keep) {
    std::vector<Token> rows(tokens.begin() + static_cast<ptrdiff_t>(from),
                            tokens.begin() + static_cast<ptrdiff_t>(to));
    for (size_t i = 0; i < wrong; ++i) rows.push_back(token(random));
    auto out = launches.run_rows(rows, static_cast<int32_t>(from), keep);
    out.resize(to - from);
    got.insert(got.end(), out.begin(), out.end());
  };
  go_on(1, 3, 2, 1);
  go_on(3, 4, 0, 2);
  go_on(4, 13, 0, 1);
  ASSERT_EQ(got.size(), want.size());
  for (size_t t = 0; t < want.size(); ++t) {
    SCOPED_TRACE(t);
    // A rounding to bf16 that falls on the other side in o moves the result by 2^-8 of it.
    expect_close(want[t], got[t], 0x1p-7);
  }
}

}  // namespace
}  // namespace gridless::blocks
