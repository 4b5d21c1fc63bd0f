// What launches of so many rows cost, measured on the go, and how many drafts are worth it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>

namespace gridless::decode {

// Milliseconds of a launch by its number of rows, a power of two.
//
// Times of a shared machine are too long more often than too short, so the least of the last few is
// taken. The first launch of a number of rows is left out, because it may have built the program.
// An estimate that nobody renews fades, by 30 % at most: a choice that was nearly as good as the
// one taken gets another chance, a hopeless one does not.
class LaunchTimes {
 public:
  void add(int64_t rows, double ms);
  // 0 while nothing is known of one row. What has been measured less than three times is guessed
  // from the neighbours, on a line (beyond the last one as if a further row cost a quarter of one
  // row's launch), where the guess is less.
  double ms(int64_t rows) const;

 private:
  struct Entry {
    std::deque<double> recent;
    int64_t launch = 0;  // the number of the last one
    double least() const;
  };
  double faded(const Entry& entry) const;
  double guess(int64_t rows) const;

  std::map<int64_t, Entry> entries_;
  int64_t launches_ = 0;
};

// The number of drafts, 0 to odds.size(), that promises the most tokens per time. odds[i]: the
// probability that draft i is accepted once those before it are. A launch verifies them beside the
// row of the last token, and one token always comes out of it.
int64_t drafts_worth_verifying(std::span<const double> odds, const LaunchTimes& times);

}  // namespace gridless::decode
