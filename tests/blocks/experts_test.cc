// Routed experts, packed from MXFP4 tensors, against plain sums over the experts of each row.
#include "gridless/blocks/experts.h"

#include <cmath>
#include <memory>

#include "gridless/weights/mxfp4.h"
#include "gridless/weights/stream_packer.h"
#include "tests/blocks/block_run.h"

namespace gridless::blocks {
namespace {

using weights::Format;

constexpr int64_t kLatent = 160, kInner = 64, kCount = 6, kChosen = 2;

// A matrix [out, in] of MXFP4 blocks as a file holds it, and its values.
struct Packed {
  Packed(std::mt19937& random, const std::string& name, int64_t out, int64_t in) : width(in) {
    codes.resize(static_cast<size_t>(out * in / 2));
    scales.resize(static_cast<size_t>(out * in / 32));
    for (uint8_t& c : codes) c = static_cast<uint8_t>(random());
    for (uint8_t& s : scales) s = static_cast<uint8_t>(120 + random() % 4);  // 1/128 to 1/16
    view = {.name = name, .dtype = weights::Dtype::kU8, .shape = {out, in / 2}, .stored = codes};
    scale_view = {
        .name = name, .dtype = weights::Dtype::kU8, .shape = {out, in / 32}, .stored = scales};
  }
  Packed(const Packed&) = delete;
  weights::RowSource row(int64_t r) const { return {&view, r, &scale_view}; }
  Floats values(int64_t r) const {
    Floats out(static_cast<size_t>(width));
    EXPECT_TRUE(weights::dequantise_mxfp4_row(view, scale_view, r, out.data()));
    return out;
  }

  int64_t width;
  std::vector<uint8_t> codes, scales;
  weights::TensorView view, scale_view;
};

struct Expert {
  explicit Expert(std::mt19937& random)
      : gate(random, "w1", kInner, kLatent),
        up(random, "w3", kInner, kLatent),
        down(random, "w2", kLatent, kInner) {}
  Packed gate, up, down;
};

std::vector<uint32_t> slab_of(const Expert& e, const ExpertLayout& layout) {
  std::vector<uint32_t> slab(static_cast<size_t>(layout.slab_rows() * kLanes));
  weights::MatrixPlan gate_up{.columns = {{0, kLatent}}}, down{.columns = {{0, kInner}}};
  for (const Packed* p : {&e.gate, &e.up})
    for (int64_t i = 0; i < kInner; ++i) gate_up.rows.push_back(p->row(i));
  for (int64_t i = 0; i < kLatent; ++i) down.rows.push_back(e.down.row(i));
  const auto words = static_cast<size_t>(layout.down_row() * kLanes);
  const std::span<uint32_t> all = slab;
  EXPECT_TRUE(weights::pack_matrix(layout.gate_up, layout.gate_up.used_rows(), gate_up,
                                   all.subspan(0, words)));
  const auto rest = static_cast<size_t>(layout.down.chunks() * layout.down.used_rows() * kLanes);
  EXPECT_TRUE(
      weights::pack_matrix(layout.down, layout.down.used_rows(), down, all.subspan(words, rest)));
  return slab;
}

double product(const Floats& w, const Floats& x) {
  double sum = 0;
  for (size_t i = 0; i < w.size(); ++i) sum += double{w[i]} * double{x[i]};
  return sum;
}

Floats output_of(const Expert& e, const Floats& x, const Situ& s) {
  Floats middle, out;
  for (int64_t i = 0; i < kInner; ++i) {
    const double g = rounded(product(e.gate.values(i), x));
    const double u = rounded(product(e.up.values(i), x));
    middle.push_back(rounded(s.beta * std::tanh(g / s.beta) / (1 + std::exp(-g)) * s.linear *
                             std::tanh(u / s.linear)));
  }
  for (int64_t i = 0; i < kLatent; ++i) out.push_back(rounded(product(e.down.values(i), middle)));
  return out;
}

// Rows that choose the same experts, others, and two slots for up to five of them in a launch.
TEST(Experts, AddWhatEachRowChose) {
  const Situ situ;
  for (const Format format : {Format::kMxfp4, Format::kBf16}) {
    for (const int64_t rows : {1, 4}) {
      SCOPED_TRACE(testing::Message() << weights::spelling(format) << ", rows " << rows);
      std::mt19937 random(static_cast<uint32_t>(rows));
      std::vector<std::unique_ptr<Expert>> experts;
      const ExpertLayout layout = expert_layout(kLatent, kInner, format);
      std::vector<uint32_t> slabs;
      for (int64_t e = 0; e < kCount; ++e) {
        experts.push_back(std::make_unique<Expert>(random));
        const auto slab = slab_of(*experts.back(), layout);
        slabs.insert(slabs.end(), slab.begin(), slab.end());
      }
      const std::vector<std::vector<int32_t>> choices = {{4, 1}, {0, 5}, {1, 4}, {3, 4}};
      const Floats x = rounded(normals(random, rows * kLatent));
      Floats gates(static_cast<size_t>(rows * kCount)), want(static_cast<size_t>(rows * kLatent));
      std::vector<int32_t> ids(static_cast<size_t>(rows * kLanes)), table, pages(1);
      for (int64_t r = 0; r < rows; ++r) {
        const Floats mine(x.begin() + r * kLatent, x.begin() + (r + 1) * kLatent);
        for (int64_t j = 0; j < kChosen; ++j) {
          const int32_t e = choices[static_cast<size_t>(r)][static_cast<size_t>(j)];
          ids[static_cast<size_t>(r * kLanes + j)] = e;
          const float weight = j == 0 ? 0.75f : 0.25f;
          gates[static_cast<size_t>(r * kCount + e)] = weight;
          const Floats y = output_of(*experts[static_cast<size_t>(e)], mine, situ);
          for (int64_t i = 0; i < kLatent; ++i)
            want[static_cast<size_t>(r * kLatent + i)] += weight * y[static_cast<size_t>(i)];
        }
      }
      table.assign(static_cast<size_t>(kRowFields * rows), 1);
      const auto build = [&](Kernel& k) {
        const StepRows step = declare_rows(k, rows, 1, 1);
        const Ref in = k.input("x", Elem::kF32, {panels(kLatent), rows, kLanes});
        const Ref gate = k.input("gates", Elem::kF32, {1, rows, kLanes});
        const Ref chosen = k.input("ids", Elem::kI32, {rows, kLanes});
        const Ref slab = k.input("slabs", Elem::kI32, {1, kCount, layout.slab_rows(), kLanes});
        const Ref out = k.output("sum", Elem::kF32, in.shape());
        k.scope([&] {
          ChosenExperts list(k, step, {kCount, kChosen}, 1, 0, kCount);
          Experts all(slab, layout, situ, 2);
          const Ref latent = activations(k, Elem::kBf16, kLatent, rows);
          latent.store(cast(copy_in(k, in).load(), Elem::kBf16));
          const Ref sum = activations(k, Elem::kF32, kLatent, rows);
          sum.store(zeros(k, Elem::kF32, sum.shape()));
          list.take(0, copy_in(k, chosen));
          all.prefetch(0, list);
          all.add(0, list, latent, copy_in(k, gate), sum);
          copy_out(k, sum, out);
        });
      };
      const auto results =
          run(build, {bytes_of(table), bytes_of(pages), bytes_of(to_panels(x, rows, kLatent)),
                      bytes_of(to_panels(gates, rows, kCount)), bytes_of(ids), bytes_of(slabs)});
      ASSERT_EQ(results.size(), 1u);
      // Sums in f32 may flip a rounding to bf16 in the middle.
      expect_close(want, from_panels(values_of<float>(results[0]), rows, kLatent), 0x1p-7);
    }
  }
}

}  // namespace
}  // namespace gridless::blocks
