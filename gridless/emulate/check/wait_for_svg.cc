// The drawing: rows of text with arcs at their right, because text never overlaps then, however
// many cores there are and however long the names.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gridless/base/markup.h"
#include "gridless/emulate/check/wait_for.h"

namespace gridless::emulate {
namespace {

constexpr int kRow = 62, kTop = 64, kLeft = 16, kGap = 10;
constexpr double kLetter = 7.3;  // width of a 12 px monospace letter
constexpr size_t kMostLetters = 96;

bool continues_letter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Long paths lose their middle; UTF-8 letters stay whole.
std::string shortened(const std::string& text) {
  if (text.size() <= kMostLetters) return text;
  size_t head = kMostLetters / 2, tail = text.size() - kMostLetters / 2 + 3;
  while (head > 0 && continues_letter(text[head])) --head;
  while (tail < text.size() && continues_letter(text[tail])) ++tail;
  return text.substr(0, head) + "..." + text.substr(tail);
}

struct Row {
  std::vector<std::string> lines;
  bool in_cycle = false, waits = false;
  int y = 0;
};

std::vector<Row> rows_of(const WaitForGraph& g) {
  std::vector<Row> rows;
  for (const WaitForGraph::Node& n : g.nodes) {
    Row row{.in_cycle = std::ranges::find(g.cycle, n.core) != g.cycle.end(), .waits = n.waits};
    if (n.waits) {
      std::string whom = g.whom(n.core);
      if (whom.empty())
        whom = "nobody would add to it: a signal that is missing, or went elsewhere";
      row.lines = {fmt::format("core {} waits at {}", n.core, n.at), "for " + n.for_what, whom};
    } else {
      row.lines = {fmt::format("core {} has returned", n.core)};
    }
    row.y = kTop + static_cast<int>(rows.size()) * (kRow + kGap);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string draw_row(const Row& row, int width) {
  const char* colour = row.in_cycle ? "#c0392b" : row.waits ? "#7f8c8d" : "#bdc3c7";
  std::string out = fmt::format(
      "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" "
      "fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>",
      escape_markup(fmt::format("{}", fmt::join(row.lines, "\n"))), kLeft, row.y, width, kRow,
      row.in_cycle ? "#fdf0ee" : "#f8f9f9", colour, row.in_cycle ? 2 : 1);
  for (size_t k = 0; k < row.lines.size(); ++k)
    out += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>", kLeft + 10,
                       row.y + 18 + 18 * static_cast<int>(k), k == 0 ? " font-weight=\"bold\"" : "",
                       escape_markup(shortened(row.lines[k])));
  return out + "</g>\n";
}

// How far the arc between rows at these heights swings to the right.
int bow_of(int from_y, int to_y) { return 40 + std::min(400, std::abs(to_y - from_y) / 3); }

// Arcs leave a row at its upper part and enter at its lower part.
std::string draw_edge(const WaitForGraph::Edge& e, int from_y, int to_y, int x) {
  const int y0 = from_y + kRow / 3, y1 = to_y + 2 * kRow / 3;
  const int bow = bow_of(from_y, to_y);
  return fmt::format(
      "<path d=\"M {} {} C {} {} {} {} {} {}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{} "
      "marker-end=\"url(#{})\"><title>{}</title></path>\n",
      x, y0, x + bow, y0, x + bow, y1, x + 6, y1, e.in_cycle ? "#c0392b" : "#95a5a6",
      e.in_cycle ? 2.5 : 1, e.candidate ? " stroke-dasharray=\"5 4\"" : "",
      e.in_cycle ? "red" : "grey",
      escape_markup(e.candidate ? fmt::format("core {} may wait for core {}", e.from, e.to)
                                : fmt::format("core {} waits for core {}, which would add at {}",
                                              e.from, e.to, e.at)));
}

std::string marker(const char* id, const char* colour) {
  return fmt::format(
      "<marker id=\"{}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"9\" "
      "markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M 0 0 L 10 5 L "
      "0 10 z\" fill=\"{}\"/></marker>",
      id, colour);
}

}  // namespace

std::string to_svg(const WaitForGraph& g, const std::string& title) {
  const std::vector<Row> rows = rows_of(g);
  std::map<int, int> y_of;
  for (size_t k = 0; k < rows.size(); ++k) y_of[g.nodes[k].core] = rows[k].y;
  const std::string legend =
      "an arrow leads to the core that would have sent; red: a cycle; dashed: a core that has not "
      "added to it";
  size_t letters = std::max(legend.size(), std::min(title.size(), kMostLetters));
  for (const Row& row : rows)
    for (const std::string& line : row.lines)
      letters = std::max(letters, std::min(line.size(), kMostLetters));
  const int card = static_cast<int>(static_cast<double>(letters) * kLetter) + 20;
  int bow = 0;
  for (const WaitForGraph::Edge& e : g.edges) bow = std::max(bow, bow_of(y_of[e.from], y_of[e.to]));
  const int width = kLeft + card + bow + 30;
  const int height = kTop + static_cast<int>(rows.size()) * (kRow + kGap) + 10;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"monospace\" font-size=\"12\" fill=\"#222\">\n<defs>{2}{3}</defs>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"{4}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{5}</text>\n"
      "<text x=\"{4}\" y=\"46\" fill=\"#666\">{6}</text>\n",
      width, height, marker("red", "#c0392b"), marker("grey", "#95a5a6"), kLeft,
      escape_markup(shortened(title)), legend);
  for (const Row& row : rows) out += draw_row(row, card);
  // The cycle last, so that it lies on top.
  for (bool in_cycle : {false, true})
    for (const WaitForGraph::Edge& e : g.edges)
      if (e.in_cycle == in_cycle) out += draw_edge(e, y_of[e.from], y_of[e.to], kLeft + card);
  return out + "</svg>\n";
}

}  // namespace gridless::emulate
