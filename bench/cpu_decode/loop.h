// What the two token loops of bench/cpu_decode share: the same commands, the same clocks, so that
// whatever differs is the engine.
//
// A loop holds one model and reads commands from stdin, one a line, and answers each with one line
// of JSON on stdout. It sleeps in between, so that two of them can take turns within a second.
//   forced ID ...   from an empty context, one token at a time; per position the likeliest token
//                   and how far it leads, and a sample of the last row's logits
//   context C       an empty context filled with C tokens
//   tokens N        N decode steps after that context, which is then as it was; CPU time of the
//                   process and wall time of each
//   quit
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace gridless_bench {

class Engine {
 public:
  virtual ~Engine() = default;
  virtual int32_t vocab() const = 0;
  virtual void truncate(int32_t position) = 0;  // forgets what is from `position` on
  // One launch over consecutive positions, at least one; false after a message on stderr.
  virtual bool step(std::span<const int32_t> tokens, int32_t position) = 0;
  virtual std::span<const float> logits() = 0;  // of the last token of the last step
};

inline double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename T>
void print_list(const char* name, const std::vector<T>& values, const char* end) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i)
    std::printf("%s%.6g", i == 0 ? "" : ", ", static_cast<double>(values[i]));
  std::printf("]%s", end);
}

// Spread over the first 32000 ids: every model here has them.
inline int32_t filler(int32_t i) { return 1000 + static_cast<int32_t>(i * int64_t{7919} % 31000); }

inline bool forced(Engine& engine, std::istream& in) {
  std::vector<int32_t> top;
  std::vector<float> lead, sample;
  bool finite = true;
  engine.truncate(0);
  int32_t position = 0;
  for (int32_t token = 0; in >> token; ++position) {
    if (!engine.step({&token, 1}, position)) return false;
    const std::span<const float> logits = engine.logits();
    std::size_t best = 0;
    float second = -INFINITY;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      finite = finite && std::isfinite(logits[i]);
      if (i > 0 && logits[i] > logits[best]) {
        second = logits[best];
        best = i;
      } else if (i > 0) {
        second = std::max(second, logits[i]);
      }
    }
    top.push_back(static_cast<int32_t>(best));
    lead.push_back(logits[best] - second);
  }
  if (position > 0) {
    const std::span<const float> logits = engine.logits();
    for (std::size_t i = 0; i < logits.size(); i += 97) sample.push_back(logits[i]);
  }
  std::printf("{\"finite\": %s, ", finite ? "true" : "false");
  print_list("top", top, ", ");
  print_list("lead", lead, ", ");
  print_list("sample", sample, "}\n");
  return true;
}

inline bool fill_context(Engine& engine, int32_t context) {
  constexpr int32_t kChunk = 32;
  engine.truncate(0);
  for (int32_t at = 0; at < context; at += kChunk) {
    std::vector<int32_t> tokens;
    for (int32_t i = at; i < std::min(context, at + kChunk); ++i) tokens.push_back(filler(i));
    if (!engine.step(tokens, at)) return false;
  }
  std::printf("{\"context\": %d}\n", context);
  return true;
}

inline bool decode(Engine& engine, int32_t context, int count) {
  std::vector<double> cpu_ms, wall_ms;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t token = filler(context + i);
    const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (!engine.step({&token, 1}, context + i)) return false;
    cpu_ms.push_back(1e3 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu));
    wall_ms.push_back(1e3 * (seconds(CLOCK_MONOTONIC) - wall));
  }
  engine.truncate(context);
  std::printf("{");
  print_list("cpu_ms", cpu_ms, ", ");
  print_list("wall_ms", wall_ms, "}\n");
  return true;
}

// Exit status of the process.
inline int serve(Engine& engine) {
  int32_t context = 0;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string command;
    in >> command;
    bool ok = true;
    if (command == "quit") return 0;
    if (command == "forced") {
      ok = forced(engine, in);
    } else if (command == "context" && in >> context) {
      ok = fill_context(engine, context);
    } else if (int count = 0; command == "tokens" && in >> count) {
      ok = decode(engine, context, count);
    } else {
      std::fprintf(stderr, "unknown command: %s\n", line.c_str());
      return 1;
    }
    if (!ok) return 2;
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace gridless_bench
