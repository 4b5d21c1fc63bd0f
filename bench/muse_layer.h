// The published decode step of the Muse Spark megakernel as a small kernel: its weight ring, its
// products, its exchanges in their order. What the report gives as measured times and shapes of
// which nothing else is known (attention, routing, the isolated expert phase, the launch and glue
// of a step) goes in as such: these rows test how the parts add up, not the parts.
#pragma once

#include <map>

#include "bench/figure_programs.h"

namespace gridless::bench {

// What a layer does between its products and exchanges (norms, residuals, quantisation of rows) is
// not in the report. One time for each of these ten boundaries stands for it, fitted on a single
// row, muse_nvfp4_int8_B1; the other rows are not.
inline constexpr int64_t kBoundaryNs = 450;

struct Muse {
  int rows = 1;
  bool int8_dense = true;   // else bf16
  double experts_us = 8.3;  // the isolated phase
  double attention_us = 1.5, routing_us = 0.7;
  bool f32_wire = false;
  bool by_chip = false;      // the experts' all-reduce
  bool small_loads = false;  // 60 instead of 38 loads of a layer
  bool exchanges = true;
};

class MuseLayers {
 public:
  MuseLayers(Kernel& k, const Muse& m, int layers)
      : k_(k), m_(m), layers_(layers), exchange_(k, 8), me_(k.core()) {
    for (const int mib : {20, 16, 16, 8, 8, 8}) per_matrix_.push_back(loads(mib));
    for (const int64_t n : per_matrix_) per_layer_ += n;
    load_bytes_ = (m.int8_dense ? 42 : 76) * kMi / per_layer_ / 32768 * 32768;
  }

  void record(Ref image, Ref expert_image) {
    image_ = image;
    const Shape load = shape();
    ring_ = k_.vmem(weights(), {kSlots, load[0], load[1]});
    x_ = k_.vmem(Elem::kBf16, {16, load[0]});
    out_ = k_.vmem(Elem::kF32, {16, load[1]});
    done_ = k_.dma_sems(kSlots);
    const Ref expert_slots = buffer(k_, kExpertBytes);
    const Sem expert_done = k_.dma_sem();
    const int64_t all = per_layer_ * layers_;
    k_.loop(0, std::min<int64_t>(kSlots, all), [&](Scalar load_number) { start(load_number); });
    k_.loop(0, layers_, [&](Scalar layer) {
      next_ = layer * per_layer_;
      matrix(0);
      k_.delay(static_cast<int64_t>(m_.attention_us * 1e3));
      matrix(1);
      reduce(8 * 8192 * (m_.f32_wire ? 4 : 2), false);
      matrix(2);
      matrix(3);
      matrix(4);
      gather(8 * 512 * 2);
      k_.delay(static_cast<int64_t>(m_.routing_us * 1e3));
      // The phase's bytes load the memory while it runs.
      for (int e = 0; e < kExperts; ++e) k_.copy(expert_image, expert_slots, expert_done);
      k_.delay(static_cast<int64_t>(m_.experts_us * 1e3));
      for (int e = 0; e < kExperts; ++e) k_.wait(expert_image, expert_slots, expert_done);
      reduce(8 * m_.rows * 4096 * (m_.f32_wire ? 4 : 2), m_.by_chip);
      matrix(5);
      gather(8 * 1024 * 2);
    });
  }

  int64_t per_layer() const { return per_layer_; }
  Elem weights() const { return m_.int8_dense ? Elem::kI8 : Elem::kBf16; }
  Shape shape() const { return {load_bytes_ * 8 / ir::bit_width(weights()) / 512, 512}; }
  static constexpr int kSlots = 12, kExperts = 8;
  static constexpr int64_t kExpertBytes = 51 * kMi / 16;  // 25.5 MiB in eight

 private:
  int64_t loads(int mib) const {
    const double per = m_.int8_dense ? 42.0 / 76 : m_.small_loads ? 60.0 / 38 : 1.0;
    return std::max<int64_t>(1, std::llround(mib * per / 2));
  }
  void start(Scalar load) {
    k_.copy(image_.at(load), ring_.at(load % kSlots), done_.at(load % kSlots));
  }
  void matrix(size_t which) {
    const Scalar first = next_;
    k_.loop(0, per_matrix_[which], [&](Scalar n) {
      const Scalar load = first + n;
      const Ref slot = ring_.at(load % kSlots);
      k_.wait(image_.at(0), slot, done_.at(load % kSlots));
      out_.store(product(k_, x_, slot));
      k_.if_(load + kSlots < per_layer_ * layers_, [&] { start(load + kSlots); });
    });
    k_.delay(kBoundaryNs);
    next_ = first + per_matrix_[which];
  }
  void reduce(int64_t bytes, bool by_chip) {
    if (!m_.exchanges) return;
    k_.delay(kBoundaryNs);
    k_.scope([&] { all_reduce_body(exchange_, bytes, !m_.f32_wire, by_chip); });
  }
  void gather(int64_t bytes) {
    if (!m_.exchanges) return;
    k_.delay(kBoundaryNs);
    k_.scope([&] { exchange_.all_to(exchange_.everybody(), bytes); });
  }

  Kernel& k_;
  const Muse& m_;
  int64_t layers_;
  Exchange exchange_;
  Scalar me_, next_;
  std::vector<int64_t> per_matrix_;
  int64_t per_layer_ = 0, load_bytes_ = 0;
  Ref image_, ring_, x_, out_;
  Sems done_;
};

// Microseconds of a layer: the difference between eight layers and four.
inline double muse_layer_us(const chips::TimeParameters& p, const Muse& m) {
  double ns[2];
  for (int which = 0; which < 2; ++which) {
    const int layers = which == 0 ? 4 : 8;
    Kernel k("muse", 8);
    MuseLayers body(k, m, layers);
    const Shape load = body.shape();
    const Ref image =
        k.input("image", body.weights(), {body.per_layer() * layers, load[0], load[1]});
    const Ref experts = k.input("experts", Elem::kI32, words(MuseLayers::kExpertBytes));
    k.scope([&] { body.record(image, experts); });
    ns[which] = kernel_ns(k, 8, kHost, p);
  }
  return (ns[1] - ns[0]) / 4 * 1e-3;
}

inline std::map<std::string, std::function<double(const chips::TimeParameters&)>> muse_figures() {
  using P = chips::TimeParameters;
  constexpr int kRows[] = {1, 2, 4, 8};
  constexpr double kNvfp4[] = {8.3, 15.0, 20.7, 19.0}, kInt4[] = {8.7, 10.1, 10.0, 9.3};
  constexpr double kLayers = 62, kGlueUs = 70;  // dispatch, embedding, barrier: published
  std::map<std::string, std::function<double(const P&)>> f;
  const auto step_ms = [](const P& p, const Muse& m) {
    const Stream head{.loads = m.int8_dense ? 100 : 200,
                      .weights = m.int8_dense ? Elem::kI8 : Elem::kBf16,
                      .warm_ns = 20'000};
    return (kLayers * muse_layer_us(p, m) + stream(p, head) * 1e-3 + kGlueUs) * 1e-3;
  };
  for (int b = 0; b < 4; ++b) {
    const Muse nvfp4{.rows = kRows[b], .experts_us = kNvfp4[b], .by_chip = kRows[b] == 8};
    Muse bf16 = nvfp4;
    bf16.int8_dense = false;
    f[fmt::format("muse_nvfp4_int8_B{}", kRows[b])] = [=](const P& p) { return step_ms(p, nvfp4); };
    f[fmt::format("muse_nvfp4_bf16_B{}", kRows[b])] = [=](const P& p) { return step_ms(p, bf16); };
    const auto ledger = [&](const std::string& name, Muse m, double argmax_ms) {
      m.rows = kRows[b];
      m.int8_dense = false;
      m.experts_us = kInt4[b] + (name == "baseline" || name == "round1" ? 2.3 : 0);
      f[fmt::format("muse_int4_{}_B{}", name, kRows[b])] = [=](const P& p) {
        return step_ms(p, m) + argmax_ms;
      };
    };
    // The ledger of the report: what each round removed.
    ledger("baseline",
           {.attention_us = 5.9, .routing_us = 2.7, .f32_wire = true, .small_loads = true}, 0.02);
    ledger("round1", {.routing_us = 2.7, .small_loads = true}, 0.02);
    ledger("round2", {.routing_us = 2.7}, 0.02);
    ledger("round3", {}, 0);
    ledger("round4", {.by_chip = kRows[b] == 8}, 0);
  }
  f["muse_layer_bf16_B1"] = [](const P& p) {
    return muse_layer_us(p, {.int8_dense = false, .experts_us = 8.7});
  };
  f["muse_layer_int8_B1"] = [](const P& p) { return muse_layer_us(p, {}); };
  for (const bool f32 : {false, true})
    f[f32 ? "muse_coll_B1_f32" : "muse_coll_B1"] = [=](const P& p) {
      Muse m{.int8_dense = false, .experts_us = 8.7, .f32_wire = f32};
      const double with = muse_layer_us(p, m);
      m.exchanges = false;
      return with - muse_layer_us(p, m);
    };
  return f;
}

}  // namespace gridless::bench
