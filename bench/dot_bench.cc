// Dot products of a weight stream: GB/s of weights and GFlop/s for every format, instruction set
// and number of rows, on one thread.
//
// usage: dot_bench [megabytes] [isa] [format]
//
// The stream is larger than the caches and read once per pass. Times are CPU time of the thread in
// windows of a few chunks, and the best window counts: on a shared machine the mean measures the
// neighbours. "of read" is the fraction of the measured read bandwidth of one thread.
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/cpu_features.h"
#include "gridless/base/numerics.h"
#include "gridless/base/read_bandwidth.h"
#include "gridless/cpu/kernels.h"

namespace gridless::cpu {
namespace {

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Format {
  std::string_view name;
  void (*KernelTable::*dot)(const DotArgs&);
  int64_t inputs_per_word;
  int64_t scales_per_word;  // groups of 32 that share a word of scales; 0: no scales
};

constexpr Format kFormats[] = {{"bf16", &KernelTable::dot_bf16, 2, 0},
                               {"q8", &KernelTable::dot_q8, 4, 2},
                               {"q4", &KernelTable::dot_q4, 8, 2},
                               {"q4m", &KernelTable::dot_q4m, 8, 1}};
constexpr int64_t kInputs = 1024, kPanels = 2;

int64_t chunk_rows(const Format& format) {
  const int64_t groups = kInputs / 32, per_word = format.scales_per_word;
  const int64_t scales = per_word == 0 ? 0 : (groups + per_word - 1) / per_word;
  return kPanels * (kInputs / format.inputs_per_word + scales);
}

// Words that are sound in every format: small f16 and bf16 numbers, any code.
void fill(uint32_t* words, std::size_t n) {
  uint32_t state = 1;
  for (std::size_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    words[i] = (state & 0x83ff83ffu) | 0x2c002c00u;
  }
}

struct Timing {
  double gigabytes = 0, gigaflops = 0;  // per second of the best window
};

Timing measure(const Format& format, const KernelTable& table, const uint32_t* stream,
               std::size_t stream_words, int64_t rows) {
  const std::size_t chunk = static_cast<std::size_t>(chunk_rows(format) * kLanes);
  const std::size_t chunks = stream_words / chunk;
  std::vector<uint16_t> x(static_cast<std::size_t>(kInputs * rows), 0x3f80);
  std::vector<float> out(static_cast<std::size_t>(kPanels * rows * kLanes));
  DotArgs args{.x = x.data(), .out = out.data(), .kp = kInputs, .panels = kPanels, .rows = rows};
  const std::size_t window = rows == 1 ? std::max<std::size_t>(1, (16u << 20) / (chunk * 4)) : 4;
  const double flops = 2.0 * kInputs * kPanels * kLanes * static_cast<double>(rows);
  double best = 1e30;
  const double deadline = thread_seconds() + 0.6;
  std::size_t at = 0;
  while (thread_seconds() < deadline) {
    const double begin = thread_seconds();
    for (std::size_t i = 0; i < window; ++i) {
      args.tile = stream + at * chunk;
      (table.*format.dot)(args);
      at = at + 1 < chunks ? at + 1 : 0;
    }
    best = std::min(best, (thread_seconds() - begin) / static_cast<double>(window));
  }
  return {1e-9 * static_cast<double>(chunk * 4) / best, 1e-9 * flops / best};
}

int run(int argc, char** argv) {
  const std::size_t megabytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 768;
  const std::string_view only_isa = argc > 2 ? argv[2] : "", only_format = argc > 3 ? argv[3] : "";
  const std::size_t bytes = megabytes << 20;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fmt::print(stderr, "dot_bench: no memory for a stream of {} MB; ask for less\n", megabytes);
    return 1;
  }
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  auto* stream = static_cast<uint32_t*>(memory);
  fill(stream, bytes / 4);
  const Result<ReadBandwidth> read = read_bandwidth(1);
  if (!read) {
    fmt::print(stderr, "dot_bench: {}\n", read.error().message);
    return 1;
  }
  const double gigabytes = 1e-9 * read->bytes_per_second;
  fmt::print("read bandwidth, 1 thread: {:.1f} GB/s\n", gigabytes);
  fmt::print("{:<10} {:<6} {:>4} {:>8} {:>8} {:>9}\n", "isa", "format", "rows", "GB/s", "of read",
             "GFlop/s");
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    if (isa > detected_isa() || (!only_isa.empty() && only_isa != isa_name(isa))) continue;
    for (const Format& format : kFormats) {
      if (!only_format.empty() && only_format != format.name) continue;
      for (const int64_t rows : {1, 2, 4, 8, 64}) {
        const Timing t = measure(format, kernels(isa), stream, bytes / 4, rows);
        fmt::print("{:<10} {:<6} {:>4} {:>8.1f} {:>7.0f}% {:>9.1f}\n", isa_name(isa), format.name,
                   rows, t.gigabytes, 100 * t.gigabytes / gigabytes, t.gigaflops);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace gridless::cpu

int main(int argc, char** argv) { return gridless::cpu::run(argc, argv); }
