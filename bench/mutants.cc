// Every mutant of the gallery and of the clean corpus kernels: is each that changes some execution
// found by the checker? Prints the kill table; exit status 1 if one is missed.
//   mutants [-v] [NAME...]    NAME: only subjects that contain it; -v: each mutant that is not
//   killed
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "tests/certificate/library/judge.h"

int main(int argc, char** argv) {
  using namespace gridless::certificate;  // NOLINT
  bool verbose = false;
  std::vector<std::string> wanted;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "-v") == 0) {
      verbose = true;
    } else {
      wanted.emplace_back(argv[k]);
    }
  }
  const auto start = std::chrono::steady_clock::now();
  using Row = std::array<int, kFates>;
  std::array<Row, kOperators> table{};
  std::array<int, kOperators> explored{};  // of the equivalent ones
  int flagged_explored = 0;
  int subjects = 0;
  for (const Subject& subject : all_subjects()) {
    const bool take = wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& w) {
                        return subject.name.find(w) != std::string::npos;
                      });
    if (!take) continue;
    ++subjects;
    const auto begin = std::chrono::steady_clock::now();
    const Judge judge(subject);
    auto program = subject.make();
    Row row{};
    for (const Mutation& m : mutations(program.module)) {
      const Judgement j = judge(m);
      ++row[static_cast<size_t>(j.fate)];
      ++table[static_cast<size_t>(m.op)][static_cast<size_t>(j.fate)];
      if (j.explored && j.fate == Fate::kEquivalent) ++explored[static_cast<size_t>(m.op)];
      if (j.explored && j.fate == Fate::kFlagged) ++flagged_explored;
      if (j.fate == Fate::kMissed ||
          (verbose && j.fate != Fate::kKilled && j.fate != Fate::kRefused))
        fmt::print("  {}: {} {} ({}){} found [{}] faults [{}]\n", name(j.fate), name(m.op), m.where,
                   m.variant, j.explored ? " explored" : "", fmt::join(j.found, " "),
                   fmt::join(j.faults, " "));
    }
    fmt::print("{:<44}", subject.name);
    for (int f = 0; f < kFates; ++f)
      fmt::print(" {} {:>4}", name(static_cast<Fate>(f)), row[static_cast<size_t>(f)]);
    fmt::print("  {:.1f} s\n",
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fflush(stdout);
  }
  fmt::print("\n{:<16}", "mutation");
  for (int f = 0; f < kFates; ++f) fmt::print(" {:>10}", name(static_cast<Fate>(f)));
  fmt::print("\n");
  Row sum{};
  for (int m = 0; m < kOperators; ++m) {
    fmt::print("{:<16}", name(static_cast<Operator>(m)));
    for (size_t f = 0; f < kFates; ++f) {
      fmt::print(" {:>10}", table[static_cast<size_t>(m)][f]);
      sum[f] += table[static_cast<size_t>(m)][f];
    }
    fmt::print("\n");
  }
  const int killed = sum[static_cast<size_t>(Fate::kKilled)];
  const int missed = sum[static_cast<size_t>(Fate::kMissed)];
  fmt::print("{:<16}", "all");
  for (int n : sum) fmt::print(" {:>10}", n);
  fmt::print(
      "\n{} kernels; of {} mutants that change some execution by a fault, {} are found "
      "({:.1f} %); {:.1f} s\n",
      subjects, killed + missed, killed, 100.0 * killed / std::max(1, killed + missed),
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  fmt::print("flagged ones that were explored under every timing: {}\n\nequivalent, and why:\n",
             flagged_explored);
  for (size_t m = 0; m < kOperators; ++m) {
    const int all = table[m][static_cast<size_t>(Fate::kEquivalent)];
    if (all == 0) continue;
    fmt::print("{:<16} {:>4} ({} explored under every timing): {}\n",
               name(static_cast<Operator>(m)), all, explored[m],
               why_equivalent(static_cast<Operator>(m)));
  }
  return missed > 0 ? 1 : 0;
}
