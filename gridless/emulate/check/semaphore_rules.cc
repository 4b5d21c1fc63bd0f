// Semaphores: reads whose value depends on timing (R10), and what is left at the end.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "gridless/emulate/check/rules.h"

namespace gridless::emulate {

// The value is the same in every timing if every increment is known to have happened before the
// read, or is issued after it.
void Rules::timing_reads() {
  for (const SemaphoreRead& r : trace_.reads) {
    for (int32_t i : trace_.semaphores[static_cast<size_t>(r.semaphore)].increments) {
      const Increment& e = trace_.increments[static_cast<size_t>(i)];
      const bool own = e.copy < 0 && e.issue.core == r.at.core;
      if (own || order_.before(order_.known(i), r.at) || order_.before(r.at, e.issue)) continue;
      if (!first("timing_dependent_read", r.code.op)) break;
      Finding& f =
          add("timing_dependent_read", r.code,
              fmt::format("the value read from {} depends on timing",
                          trace_.semaphore_name(r.semaphore)),
              "wait for the increments instead of reading the count", {r.at.core, e.issue.core});
      f.diagnostic.notes.push_back(
          fmt::format("the increment of core {} at {} may come before or "
                      "after the read",
                      e.issue.core, trace_.where(e.code)));
      // The other order than the run's.
      if (e.seq < r.seq) {
        show(f, e, r.at, trace_.where(r.code));
      } else {
        show(f, r.at, trace_.where(r.code), e.issue, trace_.where(e.code));
      }
      break;
    }
  }
}

// Waits whose bytes are no sum of bytes of copies. Looked for only where something is wrong anyway:
// one wait may cover several copies.
void Rules::bytes_of_waits(int32_t semaphore, const Stuck* stuck) {
  const SemaphoreLog& log = trace_.semaphores[static_cast<size_t>(semaphore)];
  std::vector<int64_t> sums{0};
  for (int32_t i : log.increments) {
    const Increment& e = trace_.increments[static_cast<size_t>(i)];
    if (e.copy < 0) return;
    sums.push_back(sums.back() + e.amount);
  }
  if (sums.size() == 1) return;
  const int64_t one = sums[1];
  const auto report = [&](const Code& code, int64_t amount, int core) {
    if (!first("wait_bytes_mismatch", code.op)) return;
    Finding& f = add("wait_bytes_mismatch", code,
                     fmt::format("the wait at {} is for {} bytes of {}, whose copies bring {}{}",
                                 trace_.where(code), amount, trace_.semaphore_name(semaphore), one,
                                 sums.size() > 2 ? " bytes at first" : " bytes in all"),
                     "name in the wait a ref as large as the copy's target", {core});
    f.diagnostic.notes.push_back(who_feeds(semaphore));
  };
  int64_t total = 0;
  for (int32_t w : log.waits) {
    const WaitEvent& wait = trace_.waits[static_cast<size_t>(w)];
    total = wait.total;
    if (std::ranges::find(sums, total) == sums.end())
      return report(wait.code, wait.amount, wait.at.core);
  }
  if (stuck && stuck->need > log.left && log.left > 0)
    report({stuck->op, stuck->iteration}, stuck->need, stuck->core);
}

// What is in the semaphore at the end of the first of its scopes that leaves something there. What
// one scope leaves a later one may take, so that nothing is left at the end.
int64_t Rules::left_in_a_scope(int32_t semaphore) const {
  const SemaphoreLog& log = trace_.semaphores[static_cast<size_t>(semaphore)];
  const int32_t launch = semaphore / (trace_.cores * trace_.semaphores_per_core);
  const auto& lives = trace_.lives[static_cast<size_t>(
      trace_.memory(trace_.owner(semaphore), trace_.semaphore_site_of(semaphore)) +
      launch * trace_.cores * trace_.sites)];
  if (lives.size() < 2) return log.left;
  std::vector<int64_t> left(lives.size(), 0);
  for (int32_t i : log.increments) {
    const Increment& e = trace_.increments[static_cast<size_t>(i)];
    if (static_cast<size_t>(e.life) < left.size()) left[static_cast<size_t>(e.life)] += e.amount;
  }
  for (int32_t w : log.waits) {
    const WaitEvent& wait = trace_.waits[static_cast<size_t>(w)];
    const auto next = std::ranges::upper_bound(lives, wait.at.pos, {},
                                               [](const Life& life) { return life.begin.pos; });
    left[static_cast<size_t>(std::max<std::ptrdiff_t>(next - lives.begin(), 1) - 1)] -= wait.amount;
  }
  const auto some = std::ranges::find_if(left, [](int64_t n) { return n != 0; });
  return some == left.end() ? 0 : *some;
}

void Rules::semaphores_left() {
  // One finding per place of allocation: semaphores, and what is left there.
  std::map<int, std::vector<std::pair<int32_t, int64_t>>> by_site;
  for (size_t s = 0; s < trace_.semaphores.size(); ++s) {
    const auto semaphore = static_cast<int32_t>(s);
    if (trace_.launches > 1 && s >= trace_.semaphores.size() / 2) continue;
    if (const int64_t left = left_in_a_scope(semaphore); left != 0)
      by_site[trace_.semaphore_site_of(semaphore)].emplace_back(semaphore, left);
  }
  for (const auto& [site, list] : by_site) {
    std::string what;
    std::vector<int> cores;
    for (const auto& [s, left] : list) {
      if (cores.size() < 8)
        what +=
            fmt::format("{}{} holds {}", what.empty() ? "" : ", ", trace_.semaphore_name(s), left);
      cores.push_back(trace_.owner(s));
      if (trace_.semaphores[static_cast<size_t>(s)].left != 0) bytes_of_waits(s, nullptr);
    }
    const bool scoped = site > trace_.kernel->barrier_site();
    Finding& f = add("semaphore_not_zero", {},
                     fmt::format("semaphores are not zero at the end{}: {}",
                                 scoped ? " of their scope" : "", what),
                     "every signal and every copied byte must be waited for", std::move(cores));
    f.diagnostic.where = trace_.kernel->sites[static_cast<size_t>(site)].where;
    f.diagnostic.notes.push_back(who_feeds(list[0].first));
  }
}

std::string Rules::who_feeds(int32_t semaphore) const {
  const SemaphoreLog& log = trace_.semaphores[static_cast<size_t>(semaphore)];
  // By core and line: how much.
  std::map<std::pair<int, std::string>, int64_t> sums;
  for (int32_t i : log.increments) {
    const Increment& e = trace_.increments[static_cast<size_t>(i)];
    sums[{e.issue.core, e.code.op->loc.str()}] += e.amount;
  }
  std::string out;
  for (const auto& [from, amount] : sums)
    out += fmt::format("{} {} by core {} at {}", out.empty() ? "it got" : ",", amount, from.first,
                       from.second);
  if (out.empty()) out = "it got nothing";
  std::map<std::string, int64_t> taken;
  for (int32_t w : log.waits) {
    const WaitEvent& wait = trace_.waits[static_cast<size_t>(w)];
    taken[wait.code.op->loc.str()] += wait.amount;
  }
  for (const auto& [where, amount] : taken)
    out += fmt::format("; {} taken by the wait at {}", amount, where);
  return out;
}

}  // namespace gridless::emulate
