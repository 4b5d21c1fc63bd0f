// What happened when, for drawing.
#pragma once

#include <string>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/time/fluid.h"

namespace gridless::time {

struct Span {
  enum class Kind : uint8_t { kMxu, kVector, kScalar, kWaitCopy, kWaitPeer, kCopy, kMessage };
  Kind kind = Kind::kScalar;
  int core = 0;
  int to = 0;  // messages: the core it goes to
  Ns begin = 0, end = 0;
  int64_t bytes = 0;  // copies and messages
  SourceLoc where;
};
std::string_view span_name(Span::Kind kind);

// Chrome's trace event format as JSON, which ui.perfetto.dev and chrome://tracing open: a process
// per core, with tracks for the core itself, its copies and its messages. Times in microseconds.
std::string perfetto_json(const std::vector<Span>& spans, std::string_view title);

// The same as a page of its own that needs no network: tracks of all cores, zoom by wheel.
std::string timeline_html(const std::vector<Span>& spans, std::string_view title);

}  // namespace gridless::time
