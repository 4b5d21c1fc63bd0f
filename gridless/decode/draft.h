// Draft: guesses at the next tokens of a text, for a model to verify many in one launch.
//
// A guess costs nothing but time when it is wrong: what is emitted is always what the model says.
// docs/speculation.md has the loop.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/decode/step_model.h"

namespace gridless::decode {

struct Proposal {
  std::vector<int32_t> tokens;  // in the order of the text; may be empty
  // Per token: the probability that the model takes it once it has taken those before, as far as
  // the draft can tell. The loop weighs it against what a longer launch costs.
  std::vector<double> odds;
};

// The draft of one text. Not thread-safe.
class Draft {
 public:
  Draft() = default;
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  virtual ~Draft() = default;

  virtual std::string_view name() const = 0;
  // A new text, which begins with the prompt.
  virtual Result<void> start(std::span<const int32_t> prompt) = 0;
  // Whether it wants to be told of launches by read().
  virtual bool reads_features() const { return false; }
  // The model's last launch has read `rows` more tokens of the text, from `position` on, in its
  // first rows. What was said of later positions is void.
  virtual Result<void> read(const StepModel& /*model*/, int64_t /*position*/, int64_t /*rows*/) {
    return {};
  }
  // At most `count` tokens, at least 1, that may follow the text.
  virtual Result<Proposal> propose(int64_t count) = 0;
  // What followed the text in truth. After a verification that is the accepted beginning of the
  // proposal, then the token that the model chose itself; without one, a single token.
  virtual Result<void> append(std::span<const int32_t> tokens) = 0;
};

}  // namespace gridless::decode
