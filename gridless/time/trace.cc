#include "gridless/time/trace.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace gridless::time {
namespace {

using nlohmann::json;

constexpr const char* kTracks[] = {"core", "copies", "messages"};

int track(Span::Kind kind) {
  return kind == Span::Kind::kCopy ? 1 : kind == Span::Kind::kMessage ? 2 : 0;
}

json metadata(const char* what, int pid, int tid, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}};
}

}  // namespace

std::string_view span_name(Span::Kind kind) {
  constexpr std::string_view kNames[] = {"mxu",           "vector", "scalar", "wait for copy",
                                         "wait for peer", "copy",   "message"};
  return kNames[static_cast<size_t>(kind)];
}

std::string perfetto_json(const std::vector<Span>& spans, std::string_view title) {
  json events = json::array();
  std::map<std::pair<int, int>, bool> tracks;
  int number = 0;
  for (const Span& s : spans) {
    const int t = track(s.kind);
    if (tracks.try_emplace({s.core, t}, true).second) {
      events.push_back(metadata("process_name", s.core, 0, fmt::format("core {}", s.core)));
      events.push_back(metadata("thread_name", s.core, t, kTracks[t]));
    }
    json args = {{"line", s.where.known() ? s.where.str() : ""}};
    if (s.bytes > 0) args["bytes"] = s.bytes;
    if (s.kind == Span::Kind::kMessage) args["to"] = s.to;
    json event = {{"name", span_name(s.kind)}, {"cat", kTracks[t]}, {"pid", s.core}, {"tid", t},
                  {"ts", s.begin * 1e-3},      {"args", args}};
    if (t == 0) {
      event["ph"] = "X";
      event["dur"] = (s.end - s.begin) * 1e-3;
      events.push_back(event);
      continue;
    }
    // Copies overlap each other, which slices of one track must not.
    event["ph"] = "b";
    event["id"] = ++number;
    events.push_back(event);
    event["ph"] = "e";
    event["ts"] = s.end * 1e-3;
    events.push_back(event);
  }
  return json({{"traceEvents", events},
               {"displayTimeUnit", "ns"},
               {"otherData", {{"title", std::string(title)}}}})
      .dump();
}

std::string timeline_html(const std::vector<Span>& spans, std::string_view title) {
  json data = json::array();
  std::map<std::string, int> lines;
  json names = json::array();
  for (const Span& s : spans) {
    const std::string where = s.where.known() ? s.where.str() : "";
    const auto [it, fresh] = lines.try_emplace(where, static_cast<int>(lines.size()));
    if (fresh) names.push_back(where);
    data.push_back({s.core, static_cast<int>(s.kind), s.begin, s.end, it->second, s.bytes, s.to});
  }
  json kinds = json::array();
  for (int k = 0; k <= static_cast<int>(Span::Kind::kMessage); ++k)
    kinds.push_back(span_name(static_cast<Span::Kind>(k)));
  // The title and file names may hold anything; in a script element only "</" would end it.
  std::string script =
      json({{"spans", data}, {"lines", names}, {"kinds", kinds}, {"title", std::string(title)}})
          .dump(-1, ' ', true, json::error_handler_t::replace);
  for (size_t at = 0; (at = script.find("</", at)) != std::string::npos; at += 3)
    script.replace(at, 2, "<\\/");
  return std::string(R"(<!doctype html><meta charset="utf-8"><title>gridless time</title>
<style>body{font:13px sans-serif;margin:12px}canvas{width:100%;border:1px solid #ccc}
b{display:inline-block;width:10px;height:10px;margin:0 4px 0 12px}</style>
<h3 id="title"></h3><div id="legend"></div><p id="about">A row per core. Wheel: zoom; drag: move.</p>
<canvas id="c"></canvas><script>const D=)") +
         script + R"(;
const colors=["#3366cc","#66aa33","#999999","#ffb366","#cc3333","#88bbee","#bb88dd"];
const legend=document.getElementById("legend"),about=document.getElementById("about");
document.getElementById("title").textContent=D.title;
D.kinds.forEach((k,i)=>{const b=document.createElement("b");b.style.background=colors[i];
legend.append(b,k)});
const cores=D.spans.reduce((m,s)=>Math.max(m,s[0]+1),1),H=26,c=document.getElementById("c");
let from=0,to=D.spans.reduce((m,s)=>Math.max(m,s[3]),1);
function draw(){const w=c.width=c.clientWidth,h=c.height=cores*H+18,g=c.getContext("2d");
g.clearRect(0,0,w,h);const x=t=>(t-from)/(to-from)*w;
for(const s of D.spans){if(s[3]<from||s[2]>to)continue;g.fillStyle=colors[s[1]];
const y=s[0]*H+(s[1]==5?14:s[1]==6?19:2),d=s[1]>4?4:11;
g.fillRect(x(s[2]),y,Math.max(.5,x(s[3])-x(s[2])),d)}
g.fillStyle="#fff";for(let k=0;k<cores;k++)g.fillText(k,3,k*H+11);
g.fillStyle="#000";for(let i=0;i<=4;i++)
g.fillText(((from+(to-from)*i/4)/1000).toFixed(2)+" us",Math.min(w-60,w*i/4),h-4)}
c.onwheel=e=>{e.preventDefault();const f=e.deltaY>0?1.25:.8,t=from+(to-from)*e.offsetX/c.width;
from=t-(t-from)*f;to=t+(to-t)*f;draw()};
c.onmousemove=e=>{if(e.buttons){const d=e.movementX/c.width*(to-from);from-=d;to-=d;draw();return}
const t=from+(to-from)*e.offsetX/c.width,k=Math.floor(e.offsetY/H);
const s=D.spans.find(s=>s[0]==k&&s[1]<5&&s[2]<=t&&t<s[3]);
about.textContent=s?`core ${k}: ${D.kinds[s[1]]}, ${((s[3]-s[2])/1000).toFixed(3)} us, `+
D.lines[s[4]]:"Wheel: zoom; drag: move."};
onresize=draw;draw()</script>
)";
}

}  // namespace gridless::time
