#include "gridless/blocks/head.h"

#include <algorithm>
#include <limits>

namespace gridless::blocks {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Keeps, per lane, the k largest logits seen so far and their ids, in descending order: an
// insertion into k registers, without any movement between lanes. Ids are f32 (exact up to 2^24),
// because the lane reductions at the end are f32.
void topk_insert(Ref y, Ref values, Ref ids, Scalar base, int64_t limit) {
  Kernel& k = *y.kernel();
  const int64_t rows = y.dim(1), keep = values.dim(0), panels = y.dim(0);
  k.composite("topk_insert", {y, values, ids, base},
              {{"panels", panels}, {"rows", rows}, {"k", keep}, {"limit", limit}}, [&] {
                std::vector<Vec> v, id;
                for (int64_t i = 0; i < keep; ++i) {
                  v.push_back(values.at(i).load());
                  id.push_back(ids.at(i).load());
                }
                for (int64_t p = 0; p < panels; ++p) {
                  Vec number = iota(k, {rows, kLanes}, 1) + (base + p * kLanes);
                  Vec x = where(number < static_cast<int>(limit), y.at(p).load(), kMinusInfinity);
                  Vec x_id = cast(number, Elem::kF32);
                  for (int64_t i = 0; i < keep; ++i) {
                    // Strictly greater: of equal logits the one that came first stays in front.
                    const Vec better = x > v[static_cast<size_t>(i)];
                    const Vec down = where(better, v[static_cast<size_t>(i)], x);
                    const Vec down_id = where(better, id[static_cast<size_t>(i)], x_id);
                    v[static_cast<size_t>(i)] = where(better, x, v[static_cast<size_t>(i)]);
                    id[static_cast<size_t>(i)] = where(better, x_id, id[static_cast<size_t>(i)]);
                    x = down;
                    x_id = down_id;
                  }
                }
                for (int64_t i = 0; i < keep; ++i) {
                  values.at(i).store(v[static_cast<size_t>(i)]);
                  ids.at(i).store(id[static_cast<size_t>(i)]);
                }
              });
}

void topk_final(Ref values, Ref ids, Ref out_values, Ref out_ids) {
  Kernel& k = *values.kernel();
  const int64_t keep = values.dim(0), rows = values.dim(1);
  k.composite("topk_final", {values, ids, out_values, out_ids}, {{"rows", rows}, {"k", keep}}, [&] {
    std::vector<Vec> vs, is;
    for (int64_t i = 0; i < keep; ++i) {
      vs.push_back(values.at(i).load());
      is.push_back(ids.at(i).load());
    }
    Vec all = concat(vs, 1);
    const Vec all_ids = concat(is, 1);
    const Vec lane = iota(k, {rows, kLanes}, 1);
    Vec best = zeros(k, Elem::kF32, {rows, kLanes}), best_id = zeros(k, Elem::kF32, {rows, kLanes});
    for (int64_t i = 0; i < keep; ++i) {
      const Vec top = max_over(all, 1);
      const Vec id = min_over(where(all == top, all_ids, std::numeric_limits<float>::max()), 1);
      best = where(lane == static_cast<int>(i), broadcast(top, {rows, kLanes}), best);
      best_id = where(lane == static_cast<int>(i), broadcast(id, {rows, kLanes}), best_id);
      all = where(all_ids == id, kMinusInfinity, all);
    }
    out_values.store(best);
    out_ids.store(cast(best_id, Elem::kI32));
  });
}

}  // namespace

HeadOutputs declare_head(Kernel& k, int64_t rows, int64_t panels) {
  HeadOutputs out;
  out.candidate_logits = k.output("candidate_logits", Elem::kF32, {rows, kLanes});
  out.candidate_ids = k.output("candidate_ids", Elem::kI32, {rows, kLanes});
  out.logits = k.output("logits", Elem::kF32, {panels, rows, kLanes});
  return out;
}

void lm_head(Kernel& k, WeightStream& stream, const std::string& name, Ref x, int64_t vocabulary,
             int64_t candidates, const HeadOutputs& out) {
  const weights::MatrixLayout& m = stream.matrix(name);
  const int64_t rows = x.dim(1), p = m.panels_per_chunk;
  k.scope([&] {
    const Ref values = k.vmem(Elem::kF32, {candidates, rows, kLanes});
    const Ref ids = k.vmem(Elem::kF32, {candidates, rows, kLanes});
    values.store(full(k, Elem::kF32, values.shape(), kMinusInfinity));
    // Distinct ids below zero, so that the final selection can tell empty places apart.
    ids.store(full(k, Elem::kF32, ids.shape(), -1.0));
    const Sem done = k.dma_sem();
    stream.project_groups(name, x, [&](Scalar g, Ref y) {
      const Copy copy = k.copy(y, out.logits.rows(g * p, p), done);
      topk_insert(y, values, ids, g * (p * kLanes), vocabulary);
      copy.wait();
    });
    const Ref best = k.vmem(Elem::kF32, {rows, kLanes});
    const Ref best_ids = k.vmem(Elem::kI32, {rows, kLanes});
    topk_final(values, ids, best, best_ids);
    k.copy(best, out.candidate_logits, done).wait();
    k.copy(best_ids, out.candidate_ids, done).wait();
  });
}

}  // namespace gridless::blocks
