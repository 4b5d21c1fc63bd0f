// Certificates of the collectives (lesson 20): every kind and algorithm on every number of cores.
// Prints a line for each; ends with 1 if one has no certificate.
//   collectives_bench [MOST]    from 2 to MOST cores (default 128)
#include <fmt/format.h>

#include <cstdlib>

#include "gridless/emulate/check/check.h"
#include "kernels/gallery.h"

namespace {

using namespace gridless;  // NOLINT

// Events of the checked run; 0 if there is no certificate.
int64_t certified(const kernels::Lesson& lesson, int cores, const char* kind,
                  const char* algorithm) {
  const auto options =
      lesson.with({{"cores", std::to_string(cores)}, {"kind", kind}, {"algorithm", algorithm}});
  const auto program = lesson.build(options.value());
  if (!program) return 0;
  const std::vector<std::span<const std::byte>> none(program->call.operands.size());
  const auto report =
      emulate::check(program->module, program->call, cores, none, {.scalars_only = true});
  return report && report->certificate ? report->events : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const kernels::Lesson& lesson = **kernels::find_lesson("20_collectives");
  const int most = argc > 1 ? std::atoi(argv[1]) : 128;
  int failed = 0;
  for (const char* kind : {"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast"})
    for (const char* algorithm : {"direct", "ring", "hierarchical", "scattered"}) {
      int64_t events = 0;
      for (int cores = 2; cores <= most; ++cores) {
        events = certified(lesson, cores, kind, algorithm);
        if (events == 0) {
          fmt::print("{} {} on {} cores: no certificate\n", kind, algorithm, cores);
          ++failed;
        }
      }
      fmt::print("{:14} {:12} 2..{} cores: certified, {} events at {}\n", kind, algorithm, most,
                 events, most);
      std::fflush(stdout);
    }
  return failed == 0 ? 0 : 1;
}
