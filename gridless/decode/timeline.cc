#include "gridless/decode/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "gridless/ir/composite.h"

namespace gridless::decode {

namespace {

using cpu::TraceEvent;

std::string_view name_of(const TraceEvent& e) {
  const std::string_view composite = ir::composite_name(*e.op);
  return composite.empty() ? e.op->info().name : composite;
}

// What a box is drawn as: a colour and its line in the legend.
struct Kind {
  const char* colour;
  const char* label;
};
Kind kind_of(const TraceEvent& e) {
  const std::string_view name = name_of(e);
  if (name.starts_with("dot_")) return {"#3b6ea5", "matrix chunk (weights stream)"};
  if (name == "decode_attention") return {"#c8553d", "attention"};
  if (name == "rms_norm") return {"#7a9e7e", "norm"};
  if (name == "qkv_rope" || name == "kv_append") return {"#e0a458", "RoPE, cache append"};
  if (name == "swiglu") return {"#8d6b94", "SwiGLU"};
  if (name == "add_sum" || name == "add_into") return {"#4f9d9d", "sum, residual"};
  if (e.op->info().cost == ir::Cost::kSync) return {"#dddddd", "waiting"};
  if (e.op->info().cost == ir::Cost::kDma)
    return {"#222222", "copy (start, or send to the other cores)"};
  return {"#aaaaaa", "other"};
}

}  // namespace

std::optional<LayerTrace> shortest_layer(std::span<const TraceEvent> launch) {
  // Norms of core 0 in order: 2 per layer, then the final one.
  std::vector<int64_t> norms;
  for (const TraceEvent& e : launch) {
    if (e.core == 0 && name_of(e) == "rms_norm") norms.push_back(e.start_ns);
  }
  const size_t layers = norms.size() / 2;
  if (layers < 3) return std::nullopt;
  size_t best = 1;
  const auto length = [&](size_t l) { return norms[2 * l + 2] - norms[2 * l]; };
  for (size_t l = 1; l + 1 < layers; ++l) {
    if (length(l) < length(best)) best = l;
  }
  LayerTrace out{{}, norms[2 * best], norms[2 * best + 2]};
  for (const TraceEvent& e : launch) {
    if (e.end_ns > out.start_ns && e.start_ns < out.end_ns) out.events.push_back(e);
  }
  return out;
}

std::string timeline_svg(const LayerTrace& layer, const std::string& title) {
  constexpr double kLeft = 70, kWidth = 1080, kLane = 46, kTop = 46;
  const double span = static_cast<double>(layer.end_ns - layer.start_ns);
  const auto x = [&](int64_t ns) {
    return kLeft + kWidth * std::clamp(static_cast<double>(ns - layer.start_ns) / span, 0.0, 1.0);
  };
  std::set<int> cores;
  std::map<std::string, std::string> legend;  // label -> colour
  for (const TraceEvent& e : layer.events) {
    cores.insert(e.core);
    legend.emplace(kind_of(e).label, kind_of(e).colour);
  }
  const double bottom = kTop + kLane * static_cast<double>(cores.size());
  const double height = bottom + 40 + 18 * static_cast<double>((legend.size() + 3) / 4);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"{:.0f}\" y=\"24\" font-size=\"15\">{}</text>\n",
      kLeft + kWidth + 30, height, kLeft, title);
  for (int core : cores) {
    const double y =
        kTop + kLane * static_cast<double>(std::distance(cores.begin(), cores.find(core)));
    svg += fmt::format("<text x=\"8\" y=\"{:.0f}\">core {}</text>\n", y + 22, core);
    for (const TraceEvent& e : layer.events) {
      if (e.core != core) continue;
      const double from = x(e.start_ns), width = std::max(x(e.end_ns) - from, 0.4);
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"32\" fill=\"{}\"><title>{} "
          "{:.2f} us, "
          "{}</title></rect>\n",
          from, y, width, kind_of(e).colour, name_of(e),
          static_cast<double>(e.end_ns - e.start_ns) * 1e-3, e.op->loc.str());
    }
  }
  // A scale of round numbers.
  double tick = 1000;
  while (span / tick > 12) tick *= tick < 2000 || tick >= 5000 ? 5 : 2;
  for (double t = 0; t <= span; t += tick) {
    const double at = kLeft + kWidth * t / span;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.0f}\" y2=\"{2:.0f}\" stroke=\"#999\"/>"
        "<text x=\"{0:.1f}\" y=\"{3:.0f}\" text-anchor=\"middle\" fill=\"#555\">{4:.0f} "
        "us</text>\n",
        at, bottom - 6, bottom, bottom + 16, t * 1e-3);
  }
  int i = 0;
  for (const auto& [label, colour] : legend) {
    const double lx = kLeft + kWidth / 4 * (i % 4), ly = bottom + 28 + 18 * (i / 4);
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/><text "
        "x=\"{:.0f}\" "
        "y=\"{:.0f}\">{}</text>\n",
        lx, ly, colour, lx + 18, ly + 11, label);
    ++i;
  }
  return svg + "</svg>\n";
}

}  // namespace gridless::decode
