// What a mutant does, seen without the checker; and what the checker says of it.
//
// Without the checker: the emulator runs it with copies that land as late as they may and with
// copies that land at once, with two kinds of garbage in memory that nobody wrote; small ones are
// explored under every timing. A fault is whatever one of these runs reports, and outputs that
// differ between them. A mutant whose runs all agree, on other outputs than the original's,
// computes another function: no synchronisation is wrong, and only the kernel's reference values
// can tell.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "gridless/emulate/check/garbage.h"
#include "tests/certificate/library/mutate.h"
#include "tests/certificate/library/subjects.h"

namespace gridless::certificate {

enum class Fate {
  kRefused,         // the verifier does not take it
  kKilled,          // a fault, and the checker finds something
  kMissed,          // a fault, and the checker finds nothing: must not be
  kKilledByValues,  // other outputs, the same in every run
  kFlagged,         // the checker finds something, no run shows it
  kEquivalent,      // nothing changes
};
inline constexpr int kFates = static_cast<int>(Fate::kEquivalent) + 1;
const char* name(Fate fate);

struct Judgement {
  Fate fate = Fate::kEquivalent;
  std::set<std::string> found;   // kinds of the checker's findings
  std::set<std::string> faults;  // what the other runs showed
  bool explored = false;         // under every timing
  std::string details;           // the checker's findings in full
};

class Judge {
 public:
  explicit Judge(const Subject& subject);
  Judgement operator()(const Mutation& mutation) const;

 private:
  emulate::GarbageRun record(const emulate::Emulator& emulator, emulate::Fill fill) const;
  bool run(const ir::Program& program, std::set<std::string>& faults) const;
  bool explore(const ir::Program& program, std::set<std::string>& faults) const;

  const Subject& subject_;
  ir::Program program_;
  std::optional<emulate::Emulator> emulator_;
  emulate::GarbageRun original_;
  bool explorable_ = false;  // the original is, within the limits
};

}  // namespace gridless::certificate
