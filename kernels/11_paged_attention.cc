// Lesson 11: attention over pages, with a trip count that only the run knows.
//
// One query row per head against a cache of keys and values kept in pages of 128 tokens, scattered
// in HBM as a table says. `length` says how many tokens there are, so the loop runs length / 128
// times, rounded up: bounds of k.loop are Scalars too.
//
// Softmax needs the maximum of all scores before the first exponential. The online form keeps a
// running maximum m, a running sum l and an output acc, and when a page raises the maximum it
// scales what it has by exp(m_old - m_new). One pass over the cache, nothing stored. The three
// values travel through the loop together.
#include <algorithm>
#include <cmath>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::kernels {

using namespace gridless::lang;  // NOLINT

namespace {

constexpr int64_t kHeads = 16, kHead = 128, kPage = 128, kPool = 16;
// Less than any score, and finite: exp(masked - m) is then 0, not NaN.
constexpr double kMasked = -1e30;

Built build(const Options& o) {
  const int64_t most_pages = o["pages"];
  Kernel k("paged_attention");
  const Ref table = k.input("table", Elem::kI32, {most_pages}, Space::kSmem);
  const Ref length = k.input("length", Elem::kI32, {1}, Space::kSmem);
  const Ref q = k.input("q", Elem::kBf16, {kHeads, kHead});
  const Ref keys = k.input("keys", Elem::kBf16, {kPool, kPage, kHead});
  const Ref values = k.input("values", Elem::kBf16, {kPool, kPage, kHead});
  const Ref out = k.output("out", Elem::kF32, {kHeads, kHead});

  k.scope([&] {
    const Ref vq = k.vmem(Elem::kBf16, {kHeads, kHead});
    const Ref vk = k.vmem(Elem::kBf16, {kPage, kHead});
    const Ref vv = k.vmem(Elem::kBf16, {kPage, kHead});
    const Ref result = k.vmem(Elem::kF32, {kHeads, kHead});
    const Sems done = k.dma_sems(2);
    k.copy(q, vq, done.at(0)).wait();

    const Scalar tokens = length.get({0});
    const Scalar pages = (tokens + (kPage - 1)) / kPage;
    const std::vector<Vec> start = {full(k, Elem::kF32, {kHeads, 1}, kMasked),  // m
                                    zeros(k, Elem::kF32, {kHeads, 1}),          // l
                                    zeros(k, Elem::kF32, {kHeads, kHead})};     // acc
    const std::vector<Vec> end = k.loop(0, pages, start, [&](Scalar p, std::vector<Vec> carried) {
      const Vec m = carried[0], l = carried[1], acc = carried[2];
      const Scalar page = table.get({p});
      const Copy copy_k = k.copy(keys.at(page), vk, done.at(0));
      const Copy copy_v = k.copy(values.at(page), vv, done.at(1));
      copy_k.wait();

      // dot_nt is q.k^T: keys stay as they lie, one token per row.
      const Vec raw = dot_nt(vq.load(), vk.load(), zeros(k, Elem::kF32, {kHeads, kPage}));
      const Vec token = iota(k, {kHeads, kPage}, 1) + p * kPage;
      const Vec score = where(token < tokens, raw * (1.0 / std::sqrt(double{kHead})), kMasked);

      const Vec m_new = max(m, max_over(score, 1));
      const Vec keep = exp(m - m_new);
      const Vec weight = exp(score - m_new);
      const Vec l_new = l * keep + sum(weight, 1);
      copy_v.wait();  // the values had all of the above to arrive
      return std::vector<Vec>{m_new, l_new, dot(cast(weight, Elem::kBf16), vv.load(), acc * keep)};
    });
    result.store(end[2] / end[1]);
    k.copy(result, out, done.at(0)).wait();
  });
  return k.finish();
}

PerCore inputs(const Options& o, uint64_t seed) {
  Rng rng(seed);
  Array table = whole(rng, Elem::kI32, {o["pages"]}, 0, kPool - 1);
  Array length(Elem::kI32, {1});
  length.at({0}) = static_cast<double>(std::min(o["length"], o["pages"] * kPage));
  Array q = normal(rng, Elem::kBf16, {kHeads, kHead}, 2.0);
  Array keys = normal(rng, Elem::kBf16, {kPool, kPage, kHead});
  Array values = normal(rng, Elem::kBf16, {kPool, kPage, kHead});
  return {{std::move(table), std::move(length), std::move(q), std::move(keys), std::move(values)}};
}

PerCore reference(const Options&, const PerCore& in) {
  const Array &table = in[0][0], &q = in[0][2], &keys = in[0][3], &values = in[0][4];
  const auto n = static_cast<int64_t>(in[0][1].at({0}));
  Array out(Elem::kF32, {kHeads, kHead});
  for (int64_t h = 0; h < kHeads; ++h) {
    std::vector<double> score(static_cast<size_t>(n));
    const auto page = [&](int64_t t) { return static_cast<int64_t>(table.at({t / kPage})); };
    for (int64_t t = 0; t < n; ++t) {
      double& s = score[static_cast<size_t>(t)];
      for (int64_t c = 0; c < kHead; ++c) s += q.at({h, c}) * keys.at({page(t), t % kPage, c});
      s /= std::sqrt(double{kHead});
    }
    const double top = *std::ranges::max_element(score);
    double total = 0;
    for (double& s : score) total += s = std::exp(s - top);
    for (int64_t t = 0; t < n; ++t)
      for (int64_t c = 0; c < kHead; ++c) {
        out.at({h, c}) +=
            score[static_cast<size_t>(t)] / total * values.at({page(t), t % kPage, c});
      }
  }
  return {{out}};
}

}  // namespace

Lesson lesson_11_paged_attention() {
  return {.name = "11_paged_attention",
          .title = "Online softmax over pages, as many as there are",
          .options = {{"pages", 6, "size of the page table", 1, 4096},
                      {"length", 555, "tokens in the cache", 1, 1 << 19}},
          .build = build,
          .inputs = inputs,
          .reference = reference,
          // Weights are rounded to bf16 (2^-8 relative, each on its own) and average values of size
          // up to 4.5: |error| <= 2^-8 * 4.5 = 0.018 if all roundings conspired.
          .absolute = 0.018,
          .relative = 0};
}

}  // namespace gridless::kernels
