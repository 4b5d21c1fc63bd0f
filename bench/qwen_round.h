// One speculative round of the published Qwen3.8-27B megakernel on 4 chips: verification of 8 rows
// as a small kernel (its weight ring, products, exchanges and state traffic in their order), and
// what is known of the rest of the round. Shapes are the model's; the number of waits per matrix,
// the padding of weights (1.0787), the snapshots of the recurrent state and the direct
// reduce-scatter and all-gather are those of the reference, as far as public sources tell.
//
// Given, not predicted: 8.4 us of vector work per delta-rule layer, the attention of a page, and
// what lies between the launches of a round. The row tests how parts add up.
#pragma once

#include "bench/muse_layer.h"

namespace gridless::bench {

class QwenVerify {
 public:
  static constexpr int kSlots = 12,
                       kLoads[] = {10, 4, 20, 12};  // per layer: qkvz, out, gate-up, down
  static constexpr int64_t kPerLayer = 46;
  // 47.9 million weights of a layer and core, padded, in bf16; whole tiles of 512 columns.
  static constexpr int64_t kDepth = 2192;
  static constexpr int64_t kHidden = 5120, kRows = 8, kState = 403456;

  QwenVerify(Kernel& k, int layers) : k_(k), layers_(layers), exchange_(k, 8) {}

  void record(Ref image, Ref state_in, Ref state_out) {
    image_ = image;
    ring_ = k_.vmem(Elem::kBf16, {kSlots, kDepth, 512});
    x_ = k_.vmem(Elem::kBf16, {16, kDepth});
    out_ = k_.vmem(Elem::kF32, {16, 512});
    done_ = k_.dma_sems(kSlots);
    const Ref state = buffer(k_, kState);
    const Sem read = k_.dma_sem(), written = k_.dma_sem();
    k_.loop(0, kSlots, [&](Scalar load) { start(load); });
    // Three layers of the delta rule, then one of attention.
    k_.loop(0, layers_ / 4, [&](Scalar group) {
      for (int l = 0; l < 4; ++l) {
        next_ = (group * 4 + l) * kPerLayer;
        const bool attends = l == 3;
        if (!attends) k_.copy(state_in, state, read);
        matrix(kLoads[0]);
        if (attends) {
          k_.delay(600);
          pages(state_in, state, read);
        } else {
          k_.wait(state_in, state, read);
          k_.delay(8400);
          // The new state and a snapshot of it per row.
          for (int64_t r = 0; r < kRows + 1; ++r) k_.copy(state, state_out, written);
        }
        matrix(kLoads[1]);
        reduce();
        matrix(kLoads[2]);
        matrix(kLoads[3]);
        if (!attends)
          for (int64_t r = 0; r < kRows + 1; ++r) k_.wait(state, state_out, written);
        reduce();
      }
    });
  }

 private:
  void start(Scalar load) {
    k_.copy(image_.at(load), ring_.at(load % kSlots), done_.at(load % kSlots));
  }
  void matrix(int64_t loads) {
    const Scalar first = next_;
    k_.loop(0, loads, [&](Scalar n) {
      const Scalar load = first + n;
      const Ref slot = ring_.at(load % kSlots);
      k_.wait(image_.at(0), slot, done_.at(load % kSlots));
      out_.store(product(k_, x_, slot));
      k_.if_(load + kSlots < kPerLayer * layers_, [&] { start(load + kSlots); });
    });
    k_.delay(kBoundaryNs);
    next_ = first + loads;
  }
  // Six pages of 128 tokens, two on their way.
  void pages(Ref from, Ref to, Sem done) {
    const Ref source = from.rows(0, 256), page = to.rows(0, 256);
    for (int n = 0; n < 2; ++n) k_.copy(source, page, done);
    for (int n = 0; n < 6; ++n) {
      k_.wait(source, page, done);
      k_.delay(300);
      if (n + 2 < 6) k_.copy(source, page, done);
    }
  }
  // Reduce-scatter of f32, all-gather of bf16, the norm.
  void reduce() {
    constexpr int64_t kShard = kRows * kHidden / 8;
    k_.scope([&] {
      exchange_.all_to(exchange_.everybody(), kShard * 4);
      exchange_.add(8, kShard * 4, false);
      exchange_.all_to(exchange_.everybody(), kShard * 2);
    });
    k_.delay(140 + kBoundaryNs);
  }

  Kernel& k_;
  int layers_;
  Exchange exchange_;
  Scalar next_;
  Ref image_, ring_, x_, out_;
  Sems done_;
};

inline double qwen_layer_ns(const chips::TimeParameters& p) {
  double ns[2];
  for (int which = 0; which < 2; ++which) {
    const int layers = which == 0 ? 4 : 12;
    Kernel k("qwen", 8);
    QwenVerify body(k, layers);
    const Ref image =
        k.input("image", Elem::kBf16, {QwenVerify::kPerLayer * layers, QwenVerify::kDepth, 512});
    const Ref state = k.input("state", Elem::kI32, words(QwenVerify::kState));
    const Ref next = k.output("next", Elem::kI32, words(QwenVerify::kState));
    k.scope([&] { body.record(image, state, next); });
    ns[which] = kernel_ns(k, 8, kHost, p);
  }
  return (ns[1] - ns[0]) / 8;
}

// Milliseconds of a round: verification, draft, choice of the accepted state, launches.
inline double qwen_round_ms(const chips::TimeParameters& p) {
  constexpr double kLayers = 64, kDraftBytes = 893.9e6 + 51200 * 500, kStateBytes = 38.7e6;
  const double head = stream(p, {.loads = 125, .bytes = 2676 * kKi, .warm_ns = 20'000});
  const double argmax = exchange(p, [](Exchange& e) { e.all_to(e.everybody(), 512); });
  const double sum = exchange(p, [](Exchange& e) { e.all_to(e.everybody(), 81920); });
  // The draft model: its bytes, twelve sums over all cores that nothing hides, convolutions.
  const double draft = kDraftBytes / p.hbm_core_rate + 12 * (sum + kBoundaryNs) + 55e3;
  const double select = 2 * kStateBytes / p.hbm_core_rate;
  const double between = 3 * p.launch_ns + 70e3;
  return (kLayers * qwen_layer_ns(p) + head + argmax + draft + select + between) * 1e-6;
}

}  // namespace gridless::bench
