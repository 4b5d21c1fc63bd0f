// The wait-for graph of a deadlock: who waits for whom, and the drawing of it.
#include <fmt/format.h>

#include "tests/race/race_case.h"

namespace gridless::lang {
namespace {

using emulate::CheckReport;
using emulate::WaitForGraph;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

CheckReport check_program(int cores, const std::function<void(Kernel&)>& body) {
  Kernel k("hang", cores);
  const Ref y = k.output("y", Elem::kF32, {8, 128});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {8, 128});
    const Sem done = k.dma_sem();
    a.store(k.constant({8, 128}, Elem::kF32, 1));
    k.copy(a, y, done).wait();
    body(k);
  });
  auto program = k.finish();
  EXPECT_TRUE(program) << to_string(program.error());
  return std::move(*emulate::check(program->module, program->call, cores, {}));
}

// Everybody waits for its left neighbour before it signals its right one.
CheckReport check_ring(int cores) {
  return check_program(cores, [&](Kernel& k) {
    const Sem turn = k.sem();
    k.barrier_all();
    k.wait(turn);
    k.signal(turn, 1, (k.core() + 1) % k.cores());
  });
}

// Is `text` one well-formed XML element? Knows what the drawing uses: elements, attributes in
// double quotes, text, the four named entities.
std::string xml_problem(std::string_view text) {
  std::vector<std::string> open;
  size_t i = 0;
  const auto plain = [](std::string_view t) -> std::string {
    for (size_t k = 0; k < t.size(); ++k) {
      if (t[k] == '<' || t[k] == '>') return "an angle bracket in text";
      if (static_cast<unsigned char>(t[k]) < 0x20 && t[k] != '\n') return "a control letter";
      if (t[k] != '&') continue;
      const std::string_view rest = t.substr(k);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
          !rest.starts_with("&quot;"))
        return "an unknown entity";
    }
    return "";
  };
  while (i < text.size()) {
    const size_t tag = text.find('<', i);
    if (auto p = plain(text.substr(i, tag == text.npos ? tag : tag - i)); !p.empty()) return p;
    if (tag == text.npos) break;
    size_t end = tag + 1;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != '>'); ++end) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '<') return "an angle bracket in a tag";
    }
    if (end == text.size()) return "a tag that does not end";
    const std::string_view inner = text.substr(tag + 1, end - tag - 1);
    const std::string name(inner.substr(0, inner.find_first_of(" /", 1)));
    if (inner.starts_with('/')) {
      if (open.empty() || open.back() != inner.substr(1)) return fmt::format("a stray {}", inner);
      open.pop_back();
    } else if (!inner.ends_with('/')) {
      open.push_back(name);
    }
    i = end + 1;
    if (open.empty() && text.find('<', i) != text.npos) return "more than one element";
  }
  return open.empty() ? "" : "open: " + open.back();
}

TEST(WaitFor, NamesTheCoreThatWouldHaveSent) {
  const CheckReport report = check_ring(3);
  const WaitForGraph& g = report.wait_for;
  ASSERT_EQ(g.nodes.size(), 3u);
  ASSERT_EQ(g.edges.size(), 3u);
  for (const auto& e : g.edges) {
    EXPECT_EQ(e.to, (e.from + 2) % 3);
    EXPECT_FALSE(e.candidate);
    EXPECT_TRUE(e.in_cycle);
    EXPECT_THAT(e.at, HasSubstr("wait_for_test.cc:"));
  }
  EXPECT_THAT(g.cycle, ElementsAre(0, 2, 1));
  const std::string words = to_string(report.diagnostics());
  EXPECT_THAT(words, HasSubstr("core 2 would add to it at tests/race/wait_for_test.cc:"));
  EXPECT_THAT(words, HasSubstr("cycle: core 0 waits for core 2 waits for core 1 waits for core 0"));
}

TEST(WaitFor, ACoreThatHasReturnedIsNoCycle) {
  // Core 1 signals the wrong core, and returns.
  const CheckReport report = check_program(2, [](Kernel& k) {
    const Sem turn = k.sem();
    k.barrier_all();
    k.if_(k.core() == 0, [&] { k.wait(turn); }, [&] { k.signal(turn); });
  });
  ASSERT_EQ(report.wait_for.nodes.size(), 1u);
  EXPECT_EQ(report.wait_for.nodes[0].core, 0);
  EXPECT_THAT(report.wait_for.edges, IsEmpty());
  EXPECT_THAT(report.wait_for.cycle, IsEmpty());
  EXPECT_THAT(to_svg(report.wait_for, ""), HasSubstr("nobody would add to it"));
}

TEST(WaitFor, ASignalAfterOnesOwnWaitIsACycleOfOne) {
  const CheckReport report = check_program(1, [](Kernel& k) {
    const Sem turn = k.sem();
    k.wait(turn);
    k.signal(turn);
  });
  EXPECT_THAT(report.wait_for.cycle, ElementsAre(0));
  EXPECT_THAT(to_string(report.diagnostics()), HasSubstr("itself, after the wait"));
}

TEST(WaitFor, ABarrierThatWantsOneTooManyNamesCandidates) {
  const CheckReport report = check_program(4, [](Kernel& k) {
    const Sem barrier = k.barrier_sem();
    k.signal(barrier, 1, (k.core() + 1) % 4);
    k.signal(barrier, 1, (k.core() + 3) % 4);
    k.wait(barrier, 3);
  });
  ASSERT_EQ(report.wait_for.edges.size(), 4u);
  for (const auto& e : report.wait_for.edges) {
    EXPECT_TRUE(e.candidate);
    EXPECT_EQ(e.to, (e.from + 2) % 4);
  }
}

TEST(WaitFor, NoDeadlockNoGraph) {
  const CheckReport report = check_program(2, [](Kernel& k) { k.barrier_all(); });
  EXPECT_TRUE(report.certificate);
  EXPECT_TRUE(report.wait_for.empty());
}

TEST(WaitForSvg, IsWellFormedForTwoToThirtyTwoCores) {
  for (int cores : {2, 7, 32}) {
    const CheckReport report = check_ring(cores);
    const std::string svg = to_svg(report.wait_for, fmt::format("ring of {}", cores));
    EXPECT_EQ(xml_problem(svg), "") << cores;
    for (int c = 0; c < cores; ++c) EXPECT_THAT(svg, HasSubstr(fmt::format("core {} waits at", c)));
    size_t arcs = 0;
    for (size_t at = 0; (at = svg.find("marker-end", at)) != svg.npos; ++at) ++arcs;
    EXPECT_EQ(arcs, static_cast<size_t>(cores));
  }
}

TEST(WaitForSvg, EscapesNames) {
  WaitForGraph g{.cores = 1};
  g.nodes.push_back({.core = 0,
                     .waits = true,
                     .at = "a<b>\"&\x01.py:3",
                     .for_what = "1 on \xc3\xa4" + std::string(300, 'x')});
  const std::string svg = to_svg(g, "<script>");
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;&quot;&amp;?.py:3"));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
}

}  // namespace
}  // namespace gridless::lang
