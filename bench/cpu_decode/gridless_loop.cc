// The token loop of this engine, one virtual core per thread (commands: loop.h).
//
//   gridless_loop MODEL.gguf THREADS
//   gridless_loop bandwidth THREADS     bytes per second that so many threads read
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <string_view>

#include "bench/cpu_decode/loop.h"
#include "gridless/base/read_bandwidth.h"
#include "gridless/decode/runner.h"
#include "gridless/weights/checkpoint.h"

namespace gridless_bench {
namespace {

using gridless::decode::Row;
using gridless::decode::StepRunner;

class Gridless : public Engine {
 public:
  explicit Gridless(StepRunner& runner)
      : runner_(runner), logits_(static_cast<size_t>(runner.vocab())) {}

  int32_t vocab() const override { return static_cast<int32_t>(logits_.size()); }
  void truncate(int32_t position) override { runner_.truncate(0, position); }
  bool step(std::span<const int32_t> tokens, int32_t position) override {
    rows_.clear();
    for (size_t i = 0; i < tokens.size(); ++i)
      rows_.push_back({tokens[i], 0, position + static_cast<int32_t>(i)});
    const auto ok = runner_.step(rows_);
    if (!ok) fmt::print(stderr, "gridless_loop: {}\n", ok.error().message);
    return ok.has_value();
  }
  std::span<const float> logits() override {
    const auto ok = runner_.logits(static_cast<int64_t>(rows_.size()) - 1, logits_);
    if (!ok) fmt::print(stderr, "gridless_loop: {}\n", ok.error().message);
    return logits_;
  }

 private:
  StepRunner& runner_;
  std::vector<Row> rows_;
  std::vector<float> logits_;
};

int fail(const gridless::Error& error) {
  fmt::print(stderr, "gridless_loop: {}\n", error.message);
  return 1;
}

int bandwidth(int threads) {
  const auto read = gridless::read_bandwidth(threads);
  if (!read) return fail(read.error());
  fmt::print("{:.6g}\n", read->bytes_per_second);
  return 0;
}

int run(const char* path, int threads) {
  const double begin = seconds(CLOCK_MONOTONIC);
  const auto checkpoint = gridless::weights::Checkpoint::open(path);
  if (!checkpoint) return fail(checkpoint.error());
  const auto runner = StepRunner::load(
      *checkpoint, {.cores = threads, .threads = threads, .context = 1024, .max_rows = 32});
  if (!runner) return fail(runner.error());
  const double loaded = seconds(CLOCK_MONOTONIC) - begin;
  fmt::print("{{\"load_s\": {:.2f}, \"weight_bytes\": {}}}\n", loaded, (*runner)->weight_bytes());
  std::fflush(stdout);
  Gridless engine(**runner);
  return serve(engine);
}

}  // namespace
}  // namespace gridless_bench

int main(int argc, char** argv) {
  int threads = 0;
  if (argc == 3) {
    const std::string_view text = argv[2];
    std::from_chars(text.data(), text.data() + text.size(), threads);
  }
  if (threads < 1) {
    fmt::print(stderr,
               "usage: gridless_loop MODEL.gguf|bandwidth THREADS (commands on stdin: loop.h)\n");
    return 1;
  }
  if (std::string_view(argv[1]) == "bandwidth") return gridless_bench::bandwidth(threads);
  return gridless_bench::run(argv[1], threads);
}
