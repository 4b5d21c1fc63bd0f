#include "gridless/blocks/block_residual.h"

#include <limits>

namespace gridless::blocks {

BlockResidual::BlockResidual(Kernel& k, int64_t width, int64_t rows, int64_t blocks, double eps)
    : k_(k),
      width_(width),
      eps_(eps),
      prefix_(activations(k, Elem::kF32, width, rows)),
      blocks_(k.vmem(Elem::kF32, {blocks, panels(width), rows, kLanes})) {
  k.loop(0, blocks, [&](Scalar i) { blocks_.at(i).store(zeros(k, Elem::kF32, prefix_.shape())); });
}

// [1, R, 1].
Vec BlockResidual::score(Vec v, Vec w) const {
  const auto total = [](Vec terms) { return sum(sum(terms, 0), 2); };
  return total(v * w) * rsqrt(total(v * v) * (1.0 / static_cast<double>(width_)) + eps_);
}

void BlockResidual::mix(Scalar saved, Ref w, Ref out) const {
  constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
  const int64_t blocks = blocks_.dim(0);
  const Vec weight = reshape(w.load(), {w.dim(0), 1, kLanes});
  std::vector<Vec> scores;
  for (int64_t j = 0; j < blocks; ++j) {
    // Blocks that are not there yet are zeros.
    const Scalar there = where(saved > j, Scalar(0.0), Scalar(kMinusInfinity));
    scores.push_back(score(blocks_.at(j).load(), weight) + there);
  }
  scores.push_back(score(prefix_.load(), weight));
  Vec top = scores[0], total;
  for (const Vec& s : scores) top = max(top, s);
  for (Vec& s : scores) s = exp(s - top);
  for (const Vec& s : scores) total = total ? total + s : s;
  Vec y = prefix_.load() * (scores.back() / total);
  for (int64_t j = 0; j < blocks; ++j) {
    y = y + blocks_.at(j).load() * (scores[static_cast<size_t>(j)] / total);
  }
  out.store(round_to_bf16(y));
}

void BlockResidual::save(Scalar i) const { blocks_.at(i).store(prefix_.load()); }

void BlockResidual::add(Ref y, Scalar anew) const {
  // An old prefix times one or zero, so that there is no branch; it is finite.
  const Scalar kept = where(anew, Scalar(0.0), Scalar(1.0));
  prefix_.store(round_to_bf16(prefix_.load() * kept + y.load()));
}

}  // namespace gridless::blocks
