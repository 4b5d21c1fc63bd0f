// Generator: prompts to completions on a StepRunner, one sequence at a time.
//
// The prompt goes in by chunks of consecutive positions (the largest power of two that fits, up to
// the runner's max_rows), then one launch per token. What the caches hold is remembered: a prompt
// that begins as the last one and its answer did, as the next turn of a conversation does, is only
// computed from where it differs.
//
// Not thread-safe, except that another thread or a signal handler may set the cancellation flag.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/decode/runner.h"
#include "gridless/decode/sampler.h"
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
  // Looked at before every launch: true ends the generation, which is then kCancelled.
  const std::atomic<bool>* cancel = nullptr;
};

enum class FinishReason {
  kStop,    // an end-of-text token or a stop string
  kLength,  // max_tokens, or the context is full
  kCancelled,
};
std::string_view name(FinishReason reason);  // "stop", "length", "cancelled"

struct Generation {
  std::vector<int32_t> tokens;  // the end-of-text token included
  std::string text;             // without special tokens; empty without a tokenizer
  FinishReason finish = FinishReason::kLength;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // of the prompt: found in the caches
  double ttft_ms = 0;         // from the call to the first token
  double tpot_ms = 0;         // per token after the first; 0 when there is none
  double bytes_per_step = 0;  // weights and caches read, mean over the steps after the prompt
  double tokens_per_second() const { return tpot_ms > 0 ? 1000 / tpot_ms : 0; }
};

// Errors: an empty prompt, an id outside the vocabulary.
Result<void> check_prompt(std::span<const int32_t> prompt, int64_t vocab);

class Generator {
 public:
  // `runner` must outlive the generator, which uses its sequence slot 0. `eos`: the ids that end a
  // text. Without a tokenizer there is no text.
  Generator(StepRunner& runner, std::optional<text::Tokenizer> tokenizer, std::vector<int32_t> eos);

  // Errors: an empty prompt, one that leaves no room for a token in the context, an id outside the
  // vocabulary, an option out of range, a fault of the engine.
  Result<Generation> generate(std::span<const int32_t> prompt, const GenerateOptions& options);

 private:
  Result<void> check(std::span<const int32_t> prompt, const GenerateOptions& options) const;
  // Feeds tokens at the positions after what the caches hold; false if cancelled.
  Result<bool> feed(std::span<const int32_t> tokens, const std::atomic<bool>* cancel);

  StepRunner& runner_;
  std::optional<text::Tokenizer> tokenizer_;
  std::vector<int32_t> eos_;
  std::vector<int32_t> held_;  // the tokens whose keys and values are in slot 0
  int64_t last_row_ = 0;       // of the last launch: the row of the newest token
};

}  // namespace gridless::decode
