// Block attention residual against its formula in double precision.
#include "gridless/blocks/block_residual.h"

#include <cmath>

#include "tests/blocks/block_run.h"

namespace gridless::blocks {
namespace {

constexpr int64_t kWidth = 200, kBlocks = 3;
constexpr double kEps = 1e-5;

// The mixture of `candidates`, [n][width], for one row.
Floats mixture(const std::vector<Floats>& candidates, const Floats& w) {
  std::vector<double> p;
  double top = -1e30, total = 0;
  for (const Floats& v : candidates) {
    double square = 0, dot = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      square += double{v[i]} * double{v[i]};
      dot += double{v[i]} * double{w[i]};
    }
    p.push_back(dot / std::sqrt(square / kWidth + kEps));
    top = std::max(top, p.back());
  }
  for (double& s : p) total += s = std::exp(s - top);
  Floats out(static_cast<size_t>(kWidth));
  for (size_t i = 0; i < out.size(); ++i) {
    double y = 0;
    for (size_t j = 0; j < candidates.size(); ++j) y += p[j] / total * double{candidates[j][i]};
    out[i] = static_cast<float>(y);
  }
  return out;
}

Floats row(const Floats& all, int64_t r) {
  return {all.begin() + r * kWidth, all.begin() + (r + 1) * kWidth};
}

// Four sums come one after another; the second and the fourth begin a block.
TEST(BlockResidual, MixesTheSavedBlocksAndTheRunningSum) {
  for (const int64_t rows : {1, 3}) {
    std::mt19937 random(static_cast<uint32_t>(rows));
    std::vector<Floats> y;
    for (int i = 0; i < 4; ++i) y.push_back(rounded(normals(random, rows * kWidth)));
    const Floats w = normals(random, kWidth, 0.2f);
    const auto build = [&](Kernel& k) {
      const Ref in = k.input("y", Elem::kF32, {4, panels(kWidth), rows, kLanes});
      const Ref weight = k.input("w", Elem::kF32, {panels(kWidth), kLanes});
      const Ref out = k.output("out", Elem::kF32, {5, panels(kWidth), rows, kLanes});
      k.scope([&] {
        const BlockResidual residual(k, kWidth, rows, kBlocks, kEps);
        const Ref added = copy_in(k, in), local = copy_in(k, weight);
        const Ref x = activations(k, Elem::kF32, kWidth, rows);
        residual.prefix().store(zeros(k, Elem::kF32, x.shape()));
        int64_t saved = 0;
        for (int64_t i = 0; i < 4; ++i) {
          const bool begins = i % 2 == 1;
          if (begins) residual.save(saved++);
          residual.add(added.at(i), begins ? 1 : 0);
          residual.mix(saved, local, x);
          copy_out(k, x, out.at(i));
        }
        copy_out(k, residual.prefix(), out.at(4));
      });
    };
    Floats inputs;
    for (const Floats& v : y) {
      const Floats p = to_panels(v, rows, kWidth);
      inputs.insert(inputs.end(), p.begin(), p.end());
    }
    const auto results = run(build, {bytes_of(inputs), bytes_of(to_panels(w, 1, kWidth))});
    ASSERT_EQ(results.size(), 1u);
    const Floats got = values_of<float>(results[0]);
    const auto part = [&](int64_t i) {
      const int64_t n = panels(kWidth) * rows * kLanes;
      return from_panels({got.begin() + i * n, got.begin() + (i + 1) * n}, rows, kWidth);
    };
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<Floats> blocks;
      Floats prefix(static_cast<size_t>(kWidth));
      for (int64_t i = 0; i < 4; ++i) {
        const Floats mine = row(y[static_cast<size_t>(i)], r);
        if (i % 2 == 1) {
          blocks.push_back(prefix);
          prefix = mine;
        } else {
          for (size_t d = 0; d < prefix.size(); ++d)
            prefix[d] = rounded(double{prefix[d]} + double{mine[d]});
        }
        std::vector<Floats> candidates = blocks;
        candidates.push_back(prefix);
        // One rounding to bf16 at the end.
        expect_close(mixture(candidates, w), row(part(i), r), 0x1p-8);
      }
      EXPECT_EQ(row(part(4), r), prefix);
    }
  }
}

// With nothing saved the mixture is the running sum, to the bit, whatever the weights.
TEST(BlockResidual, IsTheRunningSumWhereNoBlockIsSaved) {
  std::mt19937 random(7);
  const Floats y = rounded(normals(random, kWidth)), w = normals(random, kWidth);
  const auto build = [&](Kernel& k) {
    const Ref in = k.input("y", Elem::kF32, {panels(kWidth), 1, kLanes});
    const Ref weight = k.input("w", Elem::kF32, {panels(kWidth), kLanes});
    const Ref out = k.output("out", Elem::kF32, {panels(kWidth), 1, kLanes});
    k.scope([&] {
      const BlockResidual residual(k, kWidth, 1, kBlocks, kEps);
      residual.prefix().store(copy_in(k, in).load());
      const Ref x = activations(k, Elem::kF32, kWidth, 1);
      residual.mix(0, copy_in(k, weight), x);
      copy_out(k, x, out);
    });
  };
  const auto results =
      run(build, {bytes_of(to_panels(y, 1, kWidth)), bytes_of(to_panels(w, 1, kWidth))});
  EXPECT_EQ(values_of<float>(results.at(0)), to_panels(y, 1, kWidth));
}

}  // namespace
}  // namespace gridless::blocks
