// How fast the time model is: a step of 93 layers on 32 cores, each layer a stream of weights
// through a ring and two sums over all cores (lesson 19).
//   time_speed_bench [CHUNKS]        chunks of weights per layer, default 128
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>

#include "gridless/time/predict.h"
#include "kernels/gallery.h"

using namespace gridless;  // NOLINT

int main(int argc, char** argv) {
  const std::string chunks = argc > 1 ? argv[1] : "128";
  const auto lesson = kernels::find_lesson("19_layers");
  const auto options =
      (*lesson)->with({{"cores", "32"}, {"layers", "93"}, {"chunks", chunks}, {"tiles", "512"}});
  if (!options) {
    fmt::print(stderr, "{}\n", options.error().message);
    return 1;
  }
  const auto program = (*lesson)->build(*options);
  if (!program) {
    fmt::print(stderr, "{}\n", to_string(program.error()));
    return 1;
  }
  const auto slice = chips::smallest_slice(32);
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  const auto kernel = time::TimedKernel::create(program->module, program->call);
  const auto p = kernel->predict(time::place(*slice, 32), {}, {});
  if (!p) {
    fmt::print(stderr, "{}\n", to_string(p.error()));
    return 1;
  }
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "32 cores, 93 layers, {} chunks each: {:.3f} ms predicted, {} messages, {} instructions; "
      "{:.1f} s of one CPU, {:.1f} s by the clock\n",
      chunks, p->ns * 1e-6, p->messages, p->steps,
      static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC, wall);
  return 0;
}
