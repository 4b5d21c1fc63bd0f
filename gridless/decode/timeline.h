// A picture of one layer of a traced launch: per core a lane of boxes, one per step, to scale.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridless/cpu/engine.h"

namespace gridless::decode {

// The events of one layer on all cores. A layer begins at its first norm; the norms of a layer are
// two.
struct LayerTrace {
  std::vector<cpu::TraceEvent> events;
  int64_t start_ns = 0, end_ns = 0;
};

// The layer of the launch that took the least time (a busy machine stretches some of them), the
// first and the last left out. Nothing when the launch has fewer than three layers.
std::optional<LayerTrace> shortest_layer(std::span<const cpu::TraceEvent> launch);

// Self-contained SVG; `title` is put above the lanes.
std::string timeline_svg(const LayerTrace& layer, const std::string& title);

}  // namespace gridless::decode
