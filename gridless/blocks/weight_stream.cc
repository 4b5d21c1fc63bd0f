#include "gridless/blocks/weight_stream.h"

#include <algorithm>

#include "gridless/base/check.h"
#include "gridless/blocks/dot.h"

namespace gridless::blocks {

using weights::MatrixLayout;

namespace {
// Chunks taken together, and how many slots the ring must have for each of them: what is taken does
// not wait for anything, so that much less is on the way.
constexpr int kMostTogether = 2, kSlotsPerTaken = 4;
}  // namespace

WeightStream::WeightStream(Kernel& k, Ref image, const weights::StreamLayout& layout, int slots)
    : k_(k),
      image_(image),
      layout_(layout),
      slots_(slots),
      together_(std::clamp(slots / kSlotsPerTaken, 1, kMostTogether)) {
  ring_ = k.vmem(Elem::kI32, {slots, layout.chunk_rows, kLanes});
  done_ = k.dma_sems(slots);
  const int64_t ahead = std::min<int64_t>(slots, layout.total_chunks());
  for (int64_t g = 0; g < ahead; ++g) start(g);
}

void WeightStream::start(Scalar chunk) {
  const Scalar slot = chunk % slots_;
  k_.copy(image_.rows(chunk * layout_.chunk_rows, layout_.chunk_rows), ring_.at(slot),
          done_.at(slot));
}

void WeightStream::enter_layer(Scalar layer, Scalar chunks_on) {
  base_ = layer * layout_.chunks_per_layer + chunks_on;
  if (layout_.front_chunks > 0) base_ = base_ + layout_.front_chunks;
}
void WeightStream::enter_tail() {
  base_ = layout_.front_chunks + layout_.layers * layout_.chunks_per_layer;
}

const MatrixLayout& WeightStream::matrix(const std::string& name) const {
  for (const auto* list : {&layout_.front, &layout_.layer, &layout_.tail}) {
    for (const MatrixLayout& m : *list) {
      if (m.shape.name == name) return m;
    }
  }
  GRIDLESS_CHECK(false, "no matrix {} in the stream", name);
  __builtin_unreachable();
}

void WeightStream::take(Scalar first, int64_t count, const std::function<void(int64_t, Ref)>& use) {
  const auto tile = [&](int64_t i) { return ring_.at((first + i) % slots_); };
  for (int64_t i = 0; i < count; ++i) {
    k_.wait(image_.rows((first + i) * layout_.chunk_rows, layout_.chunk_rows), tile(i),
            done_.at((first + i) % slots_));
  }
  for (int64_t i = 0; i < count; ++i) use(i, tile(i));
  for (int64_t i = 0; i < count; ++i) {
    const Scalar next = first + i + slots_;
    k_.if_(next < layout_.total_chunks(), [&] { start(next); });
  }
}

WeightStream::Together WeightStream::together(const MatrixLayout& m) const {
  // Code of the quantised products is long: no more of it than one chunk's.
  const int64_t most = m.shape.format == weights::Format::kBf16 ? together_ : 1;
  const int64_t parts = std::min(most, m.parts);
  return {std::min(m.groups(), parts < m.parts ? 1 : most / parts), parts};
}

void WeightStream::products(const MatrixLayout& m, const Multiply& multiply,
                            const std::function<void(Scalar, int64_t)>& use) {
  const Together at_once = together(m);
  const auto groups = [&](Scalar first, int64_t count) {
    const Scalar chunk = base_ + m.first_chunk + first * m.parts;
    for (int64_t part = 0; part < m.parts; part += at_once.parts) {
      const int64_t parts = std::min(at_once.parts, m.parts - part);
      take(chunk + part, count * parts, [&](int64_t i, Ref tile) {
        const int64_t group = i / parts;
        multiply(part + i % parts, tile, first + group, group);
      });
    }
    for (int64_t i = 0; use && i < count; ++i) use(first + i, i);
  };
  const int64_t whole = m.groups() / at_once.groups, rest = m.groups() % at_once.groups;
  if (whole == 1 && !use) {
    groups(0, at_once.groups);
  } else {
    k_.loop(0, whole, [&](Scalar i) { groups(i * at_once.groups, at_once.groups); });
  }
  // (A loop of one trip: users take the number of their group as a run-time value.)
  if (rest > 0) k_.loop(whole, whole + 1, [&](Scalar i) { groups(i * at_once.groups, rest); });
}

void WeightStream::project(const std::string& name, Ref x, Ref y) {
  project(name, std::vector{x}, std::vector{y});
}

void WeightStream::project(const std::string& name, const std::vector<Ref>& x,
                           const std::vector<Ref>& y) {
  const MatrixLayout& m = matrix(name);
  products(
      m,
      [&](int64_t part, Ref tile, Scalar g, int64_t) {
        for (size_t i = 0; i < x.size(); ++i)
          dot_chunk(m, part, x[i], tile, y[i].rows(g * m.panels_per_chunk, m.panels_per_chunk));
      },
      nullptr);
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
    const Ref y = k_.vmem(Elem::kF32, {together(m).groups, m.panels_per_chunk, x.dim(1), kLanes});
    products(
        m, [&](int64_t part, Ref tile, Scalar, int64_t i) { dot_chunk(m, part, x, tile, y.at(i)); },
        [&](Scalar g, int64_t i) { use(g, y.at(i)); });
  });
}

}  // namespace gridless::blocks
