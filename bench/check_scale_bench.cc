// The checker at the size of the largest models: lesson 19 on many cores and layers, without
// values. Prints events, seconds and peak memory; ends with 1 if there is no certificate.
//   check_scale_bench [CORES] [LAYERS] [CHUNKS]
#include <fmt/format.h>
#include <sys/resource.h>

#include "gridless/emulate/check/check.h"
#include "kernels/gallery.h"

int main(int argc, char** argv) {
  using namespace gridless;  // NOLINT
  const auto argument = [&](int k, const char* otherwise) {
    return std::string(argc > k ? argv[k] : otherwise);
  };
  const kernels::Lesson* lesson = kernels::find_lesson("19_layers").value();
  const auto options = lesson->with({{"cores", argument(1, "32")},
                                     {"layers", argument(2, "90")},
                                     {"chunks", argument(3, "32")},
                                     {"tiles", "512"}});
  if (!options) {
    fmt::print(stderr, "{}\n", options.error().message);
    return 1;
  }
  const auto program = lesson->build(*options);
  if (!program) return 2;
  const ir::Call& call = program->call;
  int64_t bytes = 0;
  for (const ir::CallArg& a : call.operands) bytes += emulate::tensor_bytes(a) * call.cores;
  const std::vector<std::span<const std::byte>> none(call.operands.size());
  const auto report =
      emulate::check(program->module, call, call.cores, none, {.scalars_only = true});
  if (!report) return 2;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{} cores, {} GB of operands: {} events, {:.2f} s, {:.0f} ns per event, {} passes, "
      "peak {} MiB, certificate {}\n",
      call.cores, bytes >> 30, report->events, report->seconds,
      report->seconds * 1e9 / static_cast<double>(report->events), report->passes,
      usage.ru_maxrss / 1024, report->certificate);
  return report->certificate ? 0 : 1;
}
