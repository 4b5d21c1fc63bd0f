// Decode attention of one token over a context, and the smaller composites, at the shapes of
// SmolLM2-135M (3 key/value heads of 64, 3 queries each, 30 layers, width 576): CPU time of one
// thread per token of the model, best of many.
//
// usage: attention_bench [context]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "gridless/base/cpu_features.h"
#include "gridless/cpu/kernels.h"

namespace gridless::cpu {
namespace {

constexpr int64_t kLayers = 30, kGroups = 3, kHeads = 3, kHeadDim = 64, kStride = 256;

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Least and median milliseconds of `body`, which does the work of all layers.
template <class Body>
void report(Isa isa, const char* name, double bytes, Body body) {
  std::vector<double> times;
  const double deadline = thread_seconds() + 0.7;
  while (thread_seconds() < deadline) {
    const double begin = thread_seconds();
    body();
    times.push_back(thread_seconds() - begin);
  }
  std::sort(times.begin(), times.end());
  fmt::print("{:<10} {:<18} least {:>7.3f} ms, median {:>7.3f} ms", isa_name(isa), name,
             1e3 * times.front(), 1e3 * times[times.size() / 2]);
  if (bytes > 0) fmt::print(", {:.1f} GB/s of keys and values", 1e-9 * bytes / times.front());
  fmt::print("\n");
}

void run(int64_t context) {
  const int64_t max_pages = (context + kPageTokens - 1) / kPageTokens;
  const int64_t page = 2 * kPageTokens * kStride;
  // A cache for every layer, so that a token reads all of it once, as a model does.
  std::vector<uint16_t> cache(static_cast<size_t>(kLayers * max_pages * page), 0x3c00);
  std::vector<uint16_t> qkv((kGroups + 2) * kStride, 0x3e00), out(5 * kLanes);
  std::vector<int32_t> pages(static_cast<size_t>(max_pages));
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i);
  const int32_t rows[] = {0, 0, static_cast<int32_t>(context - 1), 1};
  std::vector<float> x(24 * kLanes, 0.5f), w(24 * kLanes, 1.0f);
  std::vector<uint16_t> narrow(24 * kLanes);
  for (const Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    if (isa > detected_isa()) continue;
    const KernelTable& table = kernels(isa);
    const double bytes = 2.0 * kLayers * static_cast<double>(context) * kHeads * kHeadDim * 2;
    report(isa, "decode_attention", bytes, [&] {
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        table.decode_attention({.qkv = qkv.data(),
                                .cache = cache.data() + layer * max_pages * page,
                                .row_table = rows,
                                .pages = pages.data(),
                                .out = out.data(),
                                .groups = kGroups,
                                .heads = kHeads,
                                .head_dim = kHeadDim,
                                .rows = 1,
                                .width_stride = kStride,
                                .max_pages = max_pages,
                                .scale = 0.125f});
      }
    });
    report(isa, "rms_norm x 61", 0, [&] {
      for (int i = 0; i < 61; ++i) {
        table.rms_norm({.x = x.data(),
                        .w = w.data(),
                        .out = narrow.data(),
                        .panels = 5,
                        .rows = 1,
                        .width = 576,
                        .eps = 1e-5f});
      }
    });
    report(isa, "qkv_rope x 30", 0, [&] {
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        table.qkv_rope({.y = x.data(),
                        .cos = w.data(),
                        .sin = w.data(),
                        .out = qkv.data(),
                        .groups = kGroups,
                        .width = kHeads * kHeadDim,
                        .rows = 1,
                        .half_stride = 128,
                        .width_stride = kStride});
      }
    });
    report(isa, "swiglu x 30", 0, [&] {
      for (int64_t layer = 0; layer < kLayers; ++layer) {
        table.swiglu({.y = x.data(), .out = narrow.data(), .panels = 24, .rows = 1});
      }
    });
  }
}

}  // namespace
}  // namespace gridless::cpu

int main(int argc, char** argv) {
  gridless::cpu::run(argc > 1 ? std::max(1L, std::strtol(argv[1], nullptr, 10)) : 512);
}
