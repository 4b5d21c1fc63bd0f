// NgramDraft: prompt lookup. The longest end of the text that occurred before, up to a number of
// tokens, proposes what followed its latest occurrence; past the end of the text it goes on with
// its own proposal, so a text with a period goes on for ever.
//
// Every length has a table from a hash of that many tokens to where they were last followed: a
// token costs one look-up per length, however long the text is.
//
// The odds are learnt while the text grows: before a token is appended, the draft notes what it
// would have said, verified or not, and keeps for every length of match how often that came true
// lately. The prompt teaches no odds: how its author repeats himself says little about the answer.
#pragma once

#include <unordered_map>

#include "gridless/decode/draft.h"

namespace gridless::decode {

class NgramDraft final : public Draft {
 public:
  static constexpr int64_t kMaxMatch = 8;
  // `max_match`: the longest match looked for, at least 1.
  explicit NgramDraft(int64_t max_match = kMaxMatch);

  std::string_view name() const override { return "ngram"; }
  Result<void> start(std::span<const int32_t> prompt) override;
  Result<Proposal> propose(int64_t count) override;
  Result<void> append(std::span<const int32_t> tokens) override;

 private:
  // How often matches of one length foretold the next token; older cases count less and less.
  struct Record {
    double right = 0, all = 0;
  };
  void push(int32_t token);
  void learn(int32_t token);
  double odds(int64_t length) const;

  std::vector<int32_t> text_;
  std::vector<std::unordered_map<uint64_t, size_t>> followed_;  // [length - 1]: hash -> follower
  std::vector<Record> records_;                                 // [length - 1]
  // The match of the end of the text: its length (0: none) and where its follower is.
  int64_t length_ = 0;
  size_t follower_ = 0;
};

}  // namespace gridless::decode
