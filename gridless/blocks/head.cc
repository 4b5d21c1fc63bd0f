#include "gridless/blocks/head.h"

#include <bit>
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

// Candidates of a row in one lane, the best first: the larger value, of equal ones the smaller id.
struct Sorted {
  std::vector<Vec> value, id;
};

// Puts the better of entries i and j into i.
void order(Sorted& s, size_t i, size_t j) {
  const Vec a = s.value[i], b = s.value[j], a_id = s.id[i], b_id = s.id[j];
  const Vec first = (a > b) | ((a == b) & (a_id < b_id));
  s.value[i] = where(first, a, b);
  s.value[j] = where(first, b, a);
  s.id[i] = where(first, a_id, b_id);
  s.id[j] = where(first, b_id, a_id);
}

// The best of both lists, as many as each has: a power of two. (Batcher's bitonic merge: the better
// of each pair, one list read backwards, are the best; exchanges over ever smaller distances sort
// them.)
Sorted best_of(const Sorted& a, const Sorted& b) {
  const size_t n = a.value.size();
  Sorted both = a;
  both.value.insert(both.value.end(), b.value.rbegin(), b.value.rend());
  both.id.insert(both.id.end(), b.id.rbegin(), b.id.rend());
  for (size_t i = 0; i < n; ++i) order(both, i, n + i);
  both.value.resize(n), both.id.resize(n);
  for (size_t distance = n / 2; distance > 0; distance /= 2)
    for (size_t i = 0; i < n; ++i)
      if ((i & distance) == 0) order(both, i, i + distance);
  return both;
}

// Lanes are joined by halves: each with the one 64 lanes on, then 32, ..., so that after seven
// rounds every lane has the best of all. A rotation takes 128 cycles however many registers are
// rotated, and a lane reduction 142: finding the k largest one after the other would take 2 k
// reductions.
void topk_final(Ref values, Ref ids, Ref out_values, Ref out_ids) {
  Kernel& k = *values.kernel();
  const int64_t keep = values.dim(0), rows = values.dim(1);
  k.composite("topk_final", {values, ids, out_values, out_ids}, {{"rows", rows}, {"k", keep}}, [&] {
    Sorted best;
    for (int64_t i = 0; i < keep; ++i) {
      best.value.push_back(values.at(i).load());
      best.id.push_back(ids.at(i).load());
    }
    // Behind all others: an id that no vocabulary has.
    for (auto i = static_cast<size_t>(keep); i < std::bit_ceil(static_cast<size_t>(keep)); ++i) {
      best.value.push_back(full(k, Elem::kF32, {rows, kLanes}, kMinusInfinity));
      best.id.push_back(full(k, Elem::kF32, {rows, kLanes}, std::numeric_limits<float>::max()));
    }
    for (int64_t distance = kLanes / 2; distance > 0; distance /= 2) {
      Sorted other;
      for (const Vec& v : best.value) other.value.push_back(roll(v, distance, 1));
      for (const Vec& v : best.id) other.id.push_back(roll(v, distance, 1));
      best = best_of(best, other);
    }
    const Vec lane = iota(k, {rows, kLanes}, 1);
    Vec out = zeros(k, Elem::kF32, {rows, kLanes}), out_id = zeros(k, Elem::kF32, {rows, kLanes});
    for (int64_t i = 0; i < keep; ++i) {
      const Vec here = lane == static_cast<int>(i);
      out = where(here, best.value[static_cast<size_t>(i)], out);
      out_id = where(here, best.id[static_cast<size_t>(i)], out_id);
    }
    out_values.store(out);
    out_ids.store(cast(out_id, Elem::kI32));
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
