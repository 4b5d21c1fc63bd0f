// The certificate against the explorer on generated programs, and a table of how they agree; exit
// status 1 if a certificate was given to a program of which some timing goes wrong.
//   agreement [PROGRAMS [FIRST_SEED]]
#include "tests/certificate/library/agreement.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>

int main(int argc, char** argv) {
  using namespace gridless::certificate;  // NOLINT
  const int programs = argc > 1 ? std::atoi(argv[1]) : 2000;
  const auto first = static_cast<uint64_t>(argc > 2 ? std::atoll(argv[2]) : 1);
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu = std::clock();
  struct Kind {
    const char* name;
    Generated (*make)(uint64_t);
    bool spoilt;
    int share;  // of 16
  };
  const Kind kinds[] = {{"woven", woven, false, 5},
                        {"woven, with mistakes", woven, true, 5},
                        {"patterns", patterned, false, 1},
                        {"patterns, with mistakes", patterned, true, 5}};
  int unsound = 0;
  fmt::print("{}", head());
  for (const Kind& kind : kinds) {
    Tally tally{.name = kind.name};
    const auto count = static_cast<uint64_t>(programs * kind.share / 16);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      Generated g = kind.make(seed);
      if (kind.spoilt) spoil(g, seed);
      const Comparison c = compare(g.program, g.cores, g.views());
      tally.add(c);
      if (c.agreement == Agreement::kUnsound || c.agreement == Agreement::kFlagged)
        fmt::print("{} {} seed {}:\n{}", c.agreement == Agreement::kUnsound ? "UNSOUND" : "flagged",
                   kind.name, seed, c.details);
    }
    fmt::print("{}", row(tally));
    std::fflush(stdout);
    unsound += tally.unsound;
  }
  fmt::print("{:.1f} s, {:.1f} s of a processor\n",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
             static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
  return unsound > 0 ? 1 : 0;
}
