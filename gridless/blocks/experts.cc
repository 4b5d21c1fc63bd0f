#include "gridless/blocks/experts.h"

#include <algorithm>

#include "gridless/base/integers.h"
#include "gridless/blocks/dot.h"

namespace gridless::blocks {

using weights::MatrixLayout;

int64_t ExpertLayout::slab_rows() const {
  return round_up(down_row() + down.chunks() * down.used_rows(), 8);
}

ExpertLayout expert_layout(int64_t latent, int64_t inner, weights::Format format) {
  ExpertLayout out{.inner = inner};
  out.gate_up = weights::whole_matrix({"gate_up", 2 * inner, round_up(latent, 32), format});
  out.down = weights::whole_matrix({"down", latent, round_up(inner, 32), format});
  return out;
}

Experts::Experts(Ref slabs, const ExpertLayout& layout, const Situ& situ, int slots)
    : k_(*slabs.kernel()), slabs_(slabs), layout_(layout), situ_(situ), slots_(slots) {
  ring_ = k_.vmem(Elem::kI32, {slots, layout.slab_rows(), kLanes});
  arrived_ = k_.dma_sems(slots);
}

void Experts::start(Scalar layer, const ChosenExperts& chosen, Scalar i) {
  k_.copy(slabs_.at(layer).at(chosen.local(i)), ring_.at(i % slots_), arrived_.at(i % slots_));
}

void Experts::prefetch(Scalar layer, const ChosenExperts& chosen) {
  // A short list cannot be asked for more, even behind a condition.
  const int64_t first = std::min<int64_t>(slots_, slabs_.dim(1));
  for (int64_t i = 0; i < first; ++i) {
    k_.if_(chosen.size() > i, [&] { start(layer, chosen, i); });
  }
}

void Experts::multiply(const MatrixLayout& m, Ref x, Ref slab, int64_t first_row, Ref y) {
  for (int64_t g = 0; g < m.groups(); ++g) {
    dot_chunk(m, 0, x, slab.rows(first_row + g * m.used_rows(), m.used_rows()),
              y.rows(g * m.panels_per_chunk, m.panels_per_chunk));
  }
}

void Experts::add(Scalar layer, const ChosenExperts& chosen, Ref x, Ref gates, Ref total) {
  const int64_t rows = x.dim(1), inner = layout_.inner;
  const Vec number =
      iota(k_, gates.shape(), 0) * static_cast<int>(kLanes) + iota(k_, gates.shape(), 2);
  k_.scope([&] {
    const Ref y = k_.vmem(Elem::kF32, {layout_.gate_up.panels, rows, kLanes});
    const Ref middle = activations(k_, Elem::kBf16, inner, rows);
    const Ref out = k_.vmem(Elem::kF32, {layout_.down.panels, rows, kLanes});
    k_.loop(0, chosen.size(), [&](Scalar i) {
      const Ref slab = ring_.at(i % slots_);
      k_.wait(slabs_.at(layer).at(chosen.local(i)), slab, arrived_.at(i % slots_));
      multiply(layout_.gate_up, x, slab, 0, y);
      store_columns(middle,
                    cast(situ(columns(y, 0, inner), columns(y, inner, inner), situ_), Elem::kBf16));
      multiply(layout_.down, middle, slab, layout_.down_row(), out);
      k_.if_(i + slots_ < chosen.size(), [&] { start(layer, chosen, i + slots_); });
      const Vec mine = where(number == chosen.id(i), gates.load(), 0.0);
      const Vec weight = sum(sum(mine, 0), 2);  // [1, R, 1]; one term is not zero
      const Vec part = round_to_bf16(out.load({0, 0, 0}, total.shape()));
      total.store(total.load() + part * weight);
    });
  });
}

}  // namespace gridless::blocks
