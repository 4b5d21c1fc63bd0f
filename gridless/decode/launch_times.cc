#include "gridless/decode/launch_times.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gridless::decode {

namespace {
constexpr size_t kRecent = 8, kTrusted = 3;
constexpr double kFadePerLaunch = 0.995, kMostFaded = 0.7;
constexpr double kFurtherRow = 0.25;  // of the launch of one row
}  // namespace

double LaunchTimes::Entry::least() const { return *std::ranges::min_element(recent); }

void LaunchTimes::add(int64_t rows, double ms) {
  ++launches_;
  const auto [at, is_first] = entries_.try_emplace(rows);
  Entry& entry = at->second;
  entry.launch = launches_;
  if (is_first) return;
  entry.recent.push_back(ms);
  if (entry.recent.size() > kRecent) entry.recent.pop_front();
}

double LaunchTimes::faded(const Entry& entry) const {
  const auto age = static_cast<double>(launches_ - entry.launch);
  return entry.least() * std::max(std::pow(kFadePerLaunch, age), kMostFaded);
}

double LaunchTimes::ms(int64_t rows) const {
  const auto one = entries_.find(1);
  if (one == entries_.end() || one->second.recent.empty()) return 0;
  if (rows == 1) return faded(one->second);
  const auto at = entries_.find(rows);
  if (at == entries_.end() || at->second.recent.empty()) return guess(rows);
  if (at->second.recent.size() < kTrusted) return std::min(guess(rows), at->second.least());
  return faded(at->second);
}

double LaunchTimes::guess(int64_t rows) const {
  const auto cost = [](int64_t r) { return 1 + kFurtherRow * static_cast<double>(r - 1); };
  int64_t below = 1;
  double ms_below = faded(entries_.at(1));
  for (const auto& [r, entry] : entries_) {
    if (r == 1 || r == rows || entry.recent.size() < kTrusted) continue;
    const double ms = std::max(ms_below, faded(entry));  // more rows never cost less
    if (r > rows) {
      return ms_below +
             (ms - ms_below) * static_cast<double>(rows - below) / static_cast<double>(r - below);
    }
    below = r;
    ms_below = ms;
  }
  return ms_below * cost(rows) / cost(below);
}

int64_t drafts_worth_verifying(std::span<const double> odds, const LaunchTimes& times) {
  int64_t best = 0;
  double best_rate = 0, tokens = 1, all_taken = 1;
  for (size_t k = 0; k <= odds.size(); ++k) {
    if (k > 0) tokens += all_taken *= odds[k - 1];
    // A launch has room for a power of two: only full ones and the longest are worth a thought.
    if (k < odds.size() && !std::has_single_bit(k + 1)) continue;
    const double ms = times.ms(static_cast<int64_t>(std::bit_ceil(k + 1)));
    if (ms == 0) return 0;
    if (const double rate = tokens / ms; rate > best_rate) {
      best_rate = rate;
      best = static_cast<int64_t>(k);
    }
  }
  return best;
}

}  // namespace gridless::decode
