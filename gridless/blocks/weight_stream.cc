#include "gridless/blocks/weight_stream.h"

#include "gridless/base/check.h"
#include "gridless/blocks/dot.h"

namespace gridless::blocks {

using weights::MatrixLayout;

WeightStream::WeightStream(Kernel& k, Ref image, const weights::StreamLayout& layout, int slots)
    : k_(k), image_(image), layout_(layout), slots_(slots) {
  ring_ = k.vmem(Elem::kI32, {slots, layout.chunk_rows, kLanes});
  done_ = k.dma_sems(slots);
  for (int64_t g = 0; g < std::min<int64_t>(slots - 1, layout.total_chunks()); ++g) start(g);
}

void WeightStream::start(Scalar chunk) {
  const Scalar slot = chunk % slots_;
  k_.copy(image_.rows(chunk * layout_.chunk_rows, layout_.chunk_rows), ring_.at(slot),
          done_.at(slot));
}

void WeightStream::enter_layer(Scalar layer, Scalar chunks_on) {
  base_ = layer * layout_.chunks_per_layer + chunks_on;
}
void WeightStream::enter_tail() { base_ = layout_.layers * layout_.chunks_per_layer; }

const MatrixLayout& WeightStream::matrix(const std::string& name) const {
  for (const auto* list : {&layout_.layer, &layout_.tail}) {
    for (const MatrixLayout& m : *list) {
      if (m.shape.name == name) return m;
    }
  }
  GRIDLESS_CHECK(false, "no matrix {} in the stream", name);
  __builtin_unreachable();
}

void WeightStream::chunk(Scalar chunk, const std::function<void(Ref)>& use) {
  const Scalar slot = chunk % slots_, next = chunk + (slots_ - 1);
  const Ref tile = ring_.at(slot);
  k_.wait(image_.rows(chunk * layout_.chunk_rows, layout_.chunk_rows), tile, done_.at(slot));
  k_.if_(next < layout_.total_chunks(), [&] { start(next); });
  use(tile);
}

void WeightStream::project(const std::string& name, Ref x, Ref y) {
  const MatrixLayout& m = matrix(name);
  const auto group = [&](Scalar g) {
    for (int64_t part = 0; part < m.parts; ++part) {
      chunk(base_ + m.first_chunk + g * m.parts + part, [&](Ref tile) {
        dot_chunk(m, part, x, tile, y.rows(g * m.panels_per_chunk, m.panels_per_chunk));
      });
    }
  };
  if (m.groups() == 1) {
    group(0);
  } else {
    k_.loop(0, m.groups(), group);
  }
}

Ref WeightStream::project(const std::string& name, Ref x) {
  const Ref y = k_.vmem(Elem::kF32, {matrix(name).panels, x.dim(1), kLanes});
  project(name, x, y);
  return y;
}

void WeightStream::project_groups(const std::string& name, Ref x,
                                  const std::function<void(Scalar, Ref)>& use) {
  const MatrixLayout& m = matrix(name);
  k_.scope([&] {
    const Ref y = k_.vmem(Elem::kF32, {m.panels_per_chunk, x.dim(1), kLanes});
    k_.loop(0, m.groups(), [&](Scalar g) {
      for (int64_t part = 0; part < m.parts; ++part) {
        chunk(base_ + m.first_chunk + g * m.parts + part,
              [&](Ref tile) { dot_chunk(m, part, x, tile, y); });
      }
      use(g, y);
    });
  });
}

}  // namespace gridless::blocks
