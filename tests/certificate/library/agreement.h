// The certificate against the explorer, which sees every timing of a program and shares none of the
// certificate's rules.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/certificate/library/programs.h"

namespace gridless::certificate {

enum class Agreement {
  kClean,    // both say so
  kFault,    // both find something
  kUnsound,  // the certificate is given, and some timing goes wrong: must not be
  kFlagged,  // no timing goes wrong, but the checker finds something that timings can show
  kGarbage,  // no timing goes wrong; the checker finds what the explorer does not judge: garbage
  kOpen,     // too many timings to explore
};

struct Comparison {
  Agreement agreement = Agreement::kClean;
  std::set<std::string> found;     // kinds of the checker's findings
  std::set<std::string> explored;  // kinds that some timing showed
  std::string details;
};

struct Limits {
  int64_t states = 5'000;
  int64_t steps = 2'000'000;
};
Comparison compare(const ir::Program& program, int cores,
                   const std::vector<std::span<const std::byte>>& inputs,
                   const Limits& limits = {});

// Counts over many programs.
struct Tally {
  std::string name;
  int programs = 0, deadlock = 0, racy = 0, other = 0, clean = 0;  // as explored
  int unsound = 0, flagged = 0, garbage = 0, open = 0;
  void add(const Comparison& c);
};
// A row of the table, and its head.
std::string head();
std::string row(const Tally& t);

}  // namespace gridless::certificate
