// The report as one HTML page: tables, and the schedule as a strip of the units over the cycles.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gridless/base/markup.h"
#include "gridless/bundles/report.h"

namespace gridless::bundles {
namespace {

constexpr int kColumns = 480;  // of the strip
constexpr int kRowsOfTable = 60;
constexpr double kStripWidth = 960, kRowHeight = 16, kLabelWidth = 74;

constexpr std::string_view kStyle = R"(
:root{--ink:#1c2024;--soft:#60646c;--line:#e3e5e8;--page:#fcfcfd;--card:#fff;--issue:#3b6ec9;
--stall:#d9822b;--loop:#8a63b8}
@media(prefers-color-scheme:dark){:root{--ink:#edeef0;--soft:#a0a4ab;--line:#2e3135;--page:#111113;
--card:#18191b;--issue:#6f9ff0;--stall:#e9a15b;--loop:#b898e0}}
body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--page);margin:2rem auto;
max-width:66rem;padding:0 1rem}
h1{font-size:1.3rem;margin:0 0 .2rem}h2{font-size:1rem;margin:2rem 0 .5rem}
p.note{color:var(--soft);margin:.2rem 0 .6rem;max-width:50rem}
.tiles{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.5rem .8rem}
.tile b{display:block;font-size:1.15rem;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:.85rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;background:var(--card);border:1px solid var(--line)}
th,td{padding:.22rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap;
font-variant-numeric:tabular-nums}
th{color:var(--soft);font-weight:500;font-size:.85rem}
td.name,th.name{text-align:left;font-family:ui-monospace,monospace;font-size:.88rem}
td.bar{width:16rem}
.bar svg{display:block}
svg text{font:10px system-ui,sans-serif;fill:var(--soft)}
.issue{fill:var(--issue)}.stall{fill:var(--stall)}.loop{fill:var(--loop)}.track{fill:var(--line)}
.key{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin:0 .3rem 0 .8rem}
)";

// 12,345
std::string grouped(double value) {
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), 1, ',');
  }
  return fmt::format("{}{}", value < 0 ? "-" : "", digits);
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string tile(std::string_view value, std::string_view what) {
  return fmt::format("<div class=tile><b>{}</b><span>{}</span></div>\n", value,
                     escape_markup(what));
}

std::string tiles(const Report& r) {
  const Analysis& a = r.analysis;
  std::string out = "<div class=tiles>\n";
  out += tile(grouped(a.total.cycles),
              r.has_schedule ? "cycles, loops counted once" : "bundles of code");
  if (r.has_schedule) {
    out +=
        tile(fmt::format("{:.0f} %", 100 * share(a.total.stalls, a.total.cycles)), "of them empty");
    out += tile(grouped(a.total.run_cycles), a.all_trips_known ? "cycles with loops counted"
                                                               : "cycles with known loops counted");
  }
  if (r.estimated_cycles) {
    out += tile(grouped(static_cast<double>(*r.estimated_cycles)),
                "cycles by libtpu's simulation, with copies");
  }
  if (r.code) out += tile(grouped(static_cast<double>(r.code_bytes())), "bytes of code");
  if (r.vmem.bytes > 0) {
    out += tile(fmt::format("{:.2f} MiB", static_cast<double>(r.vmem.bytes) / (1 << 20)), "VMEM");
  }
  out += tile(fmt::format("{} / {}", a.total.spills, a.total.fills), "registers spilled / filled");
  return out + "</div>\n";
}

// A bar of two parts, `whole` being its full length.
std::string bar(double issue, double stall, double whole) {
  constexpr double kLength = 240;
  const double a = kLength * share(issue, whole), b = kLength * share(stall, whole);
  return fmt::format(
      "<svg width=240 height=10 role=img><rect class=track width=240 height=10 />"
      "<rect class=issue width={:.1f} height=10 /><rect class=stall x={:.1f} width={:.1f} "
      "height=10 /></svg>",
      a, a, b);
}

std::string lines(const Report& r) {
  const Analysis& a = r.analysis;
  std::string out =
      "<h2>Source lines</h2><p class=note>Cycles in which something is issued are shared by the "
      "instructions of the bundle; an empty cycle is paid by the line that waits."
      "<span class=key style='background:var(--issue)'></span>issuing"
      "<span class=key style='background:var(--stall)'></span>empty</p><div class=scroll><table>"
      "<tr><th class=name>line<th>cycles<th>empty<th>&times; trips<th>share<th></tr>\n";
  int n = 0;
  for (const LineCost& line : a.lines) {
    if (++n > kRowsOfTable) {
      out += fmt::format("<tr><td class=name>{} more lines<td><td><td><td><td></tr>\n",
                         std::ssize(a.lines) - kRowsOfTable);
      break;
    }
    const Cost& c = line.cost;
    out += fmt::format("<tr><td class=name>{}<td>{}<td>{}<td>{}<td>{:.1f} %<td class=bar>{}</tr>\n",
                       escape_markup(place_name(line.where)), grouped(c.cycles), grouped(c.stalls),
                       grouped(c.run_cycles), 100 * share(c.run_cycles, a.total.run_cycles),
                       bar(c.run_cycles - c.run_stalls, c.run_stalls, a.lines[0].cost.run_cycles));
  }
  return out + "</table></div>\n";
}

std::string loops(const Report& r) {
  const Analysis& a = r.analysis;
  if (a.loops.empty()) return "";
  std::string out =
      "<h2>Loops</h2><div class=scroll><table><tr><th class=name>loop<th>trips<th>cycles per "
      "trip<th>empty<th>&times; trips<th></tr>\n";
  for (size_t l = 0; l < a.loops.size(); ++l) {
    const Loop& loop = a.structure.loops[l];
    const Cost& c = a.loops[l];
    out += fmt::format(
        "<tr><td class=name style='padding-left:{:.1f}rem'>{}<td title=\"{}\">{}<td>{}<td>{}<td>{}"
        "<td class=bar>{}</tr>\n",
        0.6 + 1.2 * (loop.depth - 1),
        loop.place < 0 ? "(compiler)" : escape_markup(place_name(a.listing.places[loop.place])),
        escape_markup(loop.why_unknown),
        loop.trips ? grouped(static_cast<double>(*loop.trips)) : "?", grouped(c.cycles),
        grouped(c.stalls), grouped(c.run_cycles),
        bar(c.run_cycles - c.run_stalls, c.run_stalls, a.total.run_cycles));
  }
  return out + "</table></div>\n";
}

std::string slots_and_causes(const Report& r) {
  const Analysis& a = r.analysis;
  std::string out =
      "<h2>Slots</h2><div class=scroll><table><tr><th class=name>unit<th>instructions<th>of its "
      "slots<th></tr>\n";
  for (int u = 1; u < kUnits; ++u) {
    const Unit unit = static_cast<Unit>(u);
    const double slots = slot_capacity(unit) * a.total.cycles;
    const auto issued = static_cast<double>(a.total.issued[u]);
    out += fmt::format("<tr><td class=name>{}<td>{}<td>{:.1f} %<td class=bar>{}</tr>\n",
                       unit_name(unit), grouped(issued), 100 * share(issued, slots),
                       bar(issued, 0, slots));
  }
  out += "</table></div>\n";
  if (!r.has_schedule || a.total.stalls == 0) return out;
  out +=
      "<h2>What the empty cycles wait for</h2><div class=scroll><table><tr><th class=name>cause"
      "<th>cycles<th>&times; trips<th></tr>\n";
  for (int c = 0; c < kStallCauses; ++c) {
    if (a.stall_cycles[c] == 0) continue;
    out += fmt::format("<tr><td class=name>{}<td>{}<td>{}<td class=bar>{}</tr>\n",
                       cause_text(static_cast<StallCause>(c)), grouped(a.stall_cycles[c]),
                       grouped(a.run_stall_cycles[c]),
                       bar(0, a.run_stall_cycles[c], a.total.run_stalls));
  }
  return out + "</table></div>\n";
}

// How full the slots of each unit are, column by column: kUnits rows, the first for empty cycles.
std::vector<std::array<double, kUnits>> columns(const Analysis& a) {
  const auto n = static_cast<int64_t>(a.listing.bundles.size());
  const int64_t count = std::min<int64_t>(n, kColumns);
  std::vector<std::array<double, kUnits>> out(static_cast<size_t>(count));
  std::vector<double> cycles(static_cast<size_t>(count));
  for (int64_t b = 0; b < n; ++b) {
    const auto column = static_cast<size_t>(b * count / n);
    const Bundle& bundle = a.listing.bundles[b];
    cycles[column] += 1;
    out[column][0] += bundle.empty;
    for (int i = bundle.first; i < bundle.last; ++i) {
      const Unit unit = a.listing.instructions[i].unit;
      if (unit != Unit::kNone) out[column][static_cast<size_t>(unit)] += 1.0 / slot_capacity(unit);
    }
  }
  for (size_t c = 0; c < out.size(); ++c) {
    for (double& value : out[c]) value = std::min(1.0, value / cycles[c]);
  }
  return out;
}

// One row of the strip; neighbours of the same shade are one rectangle.
std::string strip_row(const std::vector<std::array<double, kUnits>>& table, int unit, double y) {
  const double width = kStripWidth / static_cast<double>(table.size());
  const auto shade = [&](size_t c) { return std::ceil(table[c][unit] * 5) / 5; };
  std::string out;
  for (size_t c = 0, end = 0; c < table.size(); c = end) {
    const double value = shade(c);
    for (end = c + 1; end < table.size() && shade(end) == value;) ++end;
    if (value == 0) continue;
    out +=
        fmt::format("<rect class={} x={:.1f} y={:.0f} width={:.1f} height={:.0f} opacity={:.1f} />",
                    unit == 0 ? "stall" : "issue", kLabelWidth + width * static_cast<double>(c), y,
                    width * static_cast<double>(end - c), kRowHeight - 3, value);
  }
  return out;
}

// One bar per loop, an inner one below the loop around it.
std::string strip_loops(const Analysis& a, int depth) {
  const double cycle = kStripWidth / static_cast<double>(a.listing.bundles.size());
  std::string out;
  for (const Loop& loop : a.structure.loops) {
    if (loop.depth > depth) continue;
    out += fmt::format(
        "<rect class=loop x={:.1f} y={} width={:.1f} height=6 rx=2><title>{} ({} "
        "trips)</title></rect>",
        kLabelWidth + cycle * loop.begin, 9 * (loop.depth - 1),
        std::max(1.0, cycle * (loop.end - loop.begin)),
        loop.place < 0 ? "(compiler)" : escape_markup(place_name(a.listing.places[loop.place])),
        loop.trips ? grouped(static_cast<double>(*loop.trips)) : "?");
  }
  return depth > 0 ? out + "<text x=0 y=8>loops</text>" : out;
}

std::string strip(const Report& r) {
  constexpr int kDeepest = 6;
  const Analysis& a = r.analysis;
  const auto table = columns(a);
  const double width = kLabelWidth + kStripWidth;
  int depth = 0;
  for (const Loop& loop : a.structure.loops)
    depth = std::max(depth, std::min(loop.depth, kDeepest));
  std::string body = strip_loops(a, depth);
  double y = 9 * depth + 4;
  for (int u = 0; u < kUnits; ++u) {
    const bool used = std::ranges::any_of(table, [&](const auto& c) { return c[u] > 0; });
    if (!used) continue;
    body += fmt::format("<text x=0 y={:.0f}>{}</text>{}\n", y + 10,
                        u == 0 ? "empty" : unit_name(static_cast<Unit>(u)), strip_row(table, u, y));
    y += kRowHeight;
  }
  body += fmt::format(
      "<text x={:.0f} y={:.0f}>0</text><text x={:.0f} y={:.0f} text-anchor=end>{} cycles</text>",
      kLabelWidth, y + 11, width, y + 11, grouped(a.total.cycles));
  return fmt::format(
      "<h2>The schedule</h2><p class=note>From the first cycle to the last, every loop once. The "
      "darker, the fuller the slots of the unit.</p><div class=scroll><svg width={:.0f} "
      "height={:.0f} role=img>{}</svg></div>\n",
      width, y + 16, body);
}

}  // namespace

std::string to_html(const Report& r) {
  return fmt::format(
      "<!doctype html>\n<html lang=en><meta charset=utf-8><meta name=viewport "
      "content=\"width=device-width\"><title>{0}: schedule</title><style>{1}</style>\n"
      "<h1>{0}</h1><p class=note>The static schedule of the TPU compiler: waits for copies and "
      "for other cores are not in it.</p>\n{2}{3}{4}{5}{6}</html>\n",
      escape_markup(r.kernel), kStyle, tiles(r), strip(r), lines(r), loops(r), slots_and_causes(r));
}

}  // namespace gridless::bundles
