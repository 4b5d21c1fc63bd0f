// Completion: one answer under way, whoever launches the rows: the choice of every token, what
// becomes of it as text, and when it is the end.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/decode/draft.h"
#include "gridless/decode/sampler.h"
#include "gridless/decode/step_model.h"
#include "gridless/decode/stop_strings.h"
#include "gridless/text/detokenizer.h"
#include "gridless/text/tokenizer.h"

namespace gridless::decode {

struct GenerateOptions {
  int64_t max_tokens = 256;  // at least 1
  SamplerOptions sampler;
  std::vector<std::string> stop;  // the text ends before the first of them; needs a tokenizer
  bool ignore_eos = false;        // go on after an end-of-text token
  // Called after every token, in this order. A piece of text is valid UTF-8 and will not change.
  std::function<void(int32_t)> on_token;
  std::function<void(std::string_view)> on_text;
  // Launches of one call: the tokens in between go from launch to launch on the devices, and the
  // host sees them afterwards. So several tokens come at once, and those after an end are computed
  // for nothing. At least 1; only greedy answers without a draft are made by more than 1.
  int64_t steps_per_call = 1;
  // Looked at before every call: true ends the generation, which is then kCancelled.
  const std::atomic<bool>* cancel = nullptr;
  // Guesses that are verified several per launch; null: one token per launch. The tokens are the
  // same either way, sampled ones too.
  Draft* draft = nullptr;
  int64_t draft_tokens = 15;  // verified per launch at most; at least 1
  bool adapt_draft = true;    // verify fewer, or none, where more are not worth their time
};

enum class FinishReason {
  kStop,    // an end-of-text token or a stop string
  kLength,  // max_tokens, or the context is full
  kCancelled,
};
std::string_view name(FinishReason reason);  // "stop", "length", "cancelled"

class Completion {
 public:
  // All but `tokenizer` must outlive it. Without a tokenizer there is no text.
  Completion(std::span<const int32_t> prompt, const GenerateOptions& options,
             const std::optional<text::Tokenizer>& tokenizer, std::span<const int32_t> eos,
             const StepLimits& limits);

  // Chooses the token that follows the one in `row` of the model's last launch, and emits it.
  // `length`: how many tokens the model has read up to that row. Errors: the logits are no numbers.
  Result<int32_t> take(const StepModel& model, int64_t row, int64_t length);
  void cancel() { finish_ = FinishReason::kCancelled; }
  // Nothing while the answer goes on.
  std::optional<FinishReason> finish() const { return finish_; }

  const std::vector<int32_t>& tokens() const { return tokens_; }
  // Every token is the likeliest one.
  bool is_greedy() const { return sampler_.is_argmax(); }
  // How many more tokens max_tokens allows.
  int64_t room() const { return options_.max_tokens - std::ssize(tokens_); }
  // The text as far as it is certain, and after the end all of it, the held-back rest included.
  std::string take_text();

 private:
  Result<int32_t> choose(const StepModel& model, int64_t row);
  void show(const std::string& piece);

  std::span<const int32_t> prompt_;
  const GenerateOptions& options_;
  std::span<const int32_t> eos_;
  int64_t context_;
  Sampler sampler_;
  std::vector<float> logits_;  // of a row, where the sampler needs them
  std::optional<text::Detokenizer> detokenizer_;
  StopStrings stops_;
  std::vector<int32_t> tokens_;
  std::string text_;
  std::optional<FinishReason> finish_;
};

}  // namespace gridless::decode
