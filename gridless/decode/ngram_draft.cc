#include "gridless/decode/ngram_draft.h"

#include <algorithm>

#include "gridless/base/check.h"

namespace gridless::decode {

namespace {

// A case counts half after some twenty others, so that the odds follow a text that changes.
constexpr double kMemory = 31.0 / 32;
// Before anything is known, a match of n tokens is right n times in n + 4, with the weight of as
// many cases.
constexpr double kPriorCases = 4;
double prior(int64_t length) {
  return static_cast<double>(length) / (static_cast<double>(length) + 4);
}

// splitmix64, whose output takes part in the next input.
uint64_t mix(uint64_t hash, int32_t token) {
  uint64_t x = hash + 0x9e3779b97f4a7c15u + static_cast<uint32_t>(token);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

NgramDraft::NgramDraft(int64_t max_match)
    : followed_(static_cast<size_t>(max_match)), records_(static_cast<size_t>(max_match)) {
  GRIDLESS_CHECK(max_match >= 1);
}

Result<void> NgramDraft::start(std::span<const int32_t> prompt) {
  text_.clear();
  for (auto& table : followed_) table.clear();
  std::ranges::fill(records_, Record{});
  length_ = 0;
  for (const int32_t token : prompt) push(token);
  return {};
}

Result<void> NgramDraft::append(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    learn(token);
    push(token);
  }
  return {};
}

void NgramDraft::push(int32_t token) {
  text_.push_back(token);
  const size_t end = text_.size();
  length_ = 0;
  uint64_t hash = 0;
  for (size_t n = 1; n <= std::min(followed_.size(), end); ++n) {
    hash = mix(hash, text_[end - n]);
    const auto [entry, is_new] = followed_[n - 1].try_emplace(hash, end);
    if (is_new) continue;
    const size_t before = std::exchange(entry->second, end);
    // Different tokens may have the same hash.
    const std::span all(text_);
    if (std::ranges::equal(all.subspan(before - n, n), all.last(n))) {
      length_ = static_cast<int64_t>(n);
      follower_ = before;
    }
  }
}

void NgramDraft::learn(int32_t token) {
  if (length_ == 0) return;
  Record& r = records_[static_cast<size_t>(length_ - 1)];
  r.right = r.right * kMemory + (text_[follower_] == token ? 1 : 0);
  r.all = r.all * kMemory + 1;
}

double NgramDraft::odds(int64_t length) const {
  const Record& r = records_[static_cast<size_t>(length - 1)];
  return (r.right + kPriorCases * prior(length)) / (r.all + kPriorCases);
}

Result<Proposal> NgramDraft::propose(int64_t count) {
  Proposal out;
  if (length_ == 0) return out;
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = follower_ + static_cast<size_t>(i);
    out.tokens.push_back(at < text_.size() ? text_[at] : out.tokens[at - text_.size()]);
    // With every token taken the match is one longer.
    out.odds.push_back(odds(std::min(length_ + i, std::ssize(records_))));
  }
  return out;
}

}  // namespace gridless::decode
