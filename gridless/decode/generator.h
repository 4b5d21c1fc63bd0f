// Generator: prompts to completions on a model, one sequence at a time.
//
// The prompt goes in by chunks of consecutive positions (the largest power of two that fits, up to
// the model's max_rows), then one launch per token, several of them per call where that is asked
// for; with a draft one launch verifies several tokens
// (docs/speculation.md). What the caches hold is remembered: a prompt that begins as the last one
// and its answer did, as the next turn of a conversation does, is only computed from where it
// differs.
//
// Not thread-safe, except that another thread or a signal handler may set the cancellation flag.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gridless/decode/completion.h"
#include "gridless/decode/launch_times.h"
#include "gridless/decode/step_model.h"
#include "gridless/text/tokenizer.h"

namespace gridless::decode {

struct DraftStatistics {
  int64_t proposed = 0;  // drafts that were verified
  int64_t accepted = 0;
  int64_t rounds = 0;  // launches that verified drafts
  // Without the token that the model adds itself.
  double mean_accepted() const {
    return rounds > 0 ? static_cast<double>(accepted) / static_cast<double>(rounds) : 0;
  }
};

struct Generation {
  std::vector<int32_t> tokens;  // the end-of-text token included
  std::string text;             // without special tokens; empty without a tokenizer
  FinishReason finish = FinishReason::kLength;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;  // of the prompt: found in the caches
  double ttft_ms = 0;         // from the call to the first token
  double tpot_ms = 0;         // per token after the first; 0 when there is none
  int64_t steps = 0;          // launches after the prompt
  double step_ms = 0;         // per such launch; 0 when there is none
  double bytes_per_step = 0;  // weights and caches read, mean over the steps after the prompt
  std::optional<DraftStatistics> draft;  // of a generation with one
  double tokens_per_second() const { return tpot_ms > 0 ? 1000 / tpot_ms : 0; }
};

// Errors: an empty prompt, an id outside the vocabulary.
Result<void> check_prompt(std::span<const int32_t> prompt, int64_t vocab);

class Generator {
 public:
  // `model` must outlive the generator, which uses its sequence slot 0. `eos`: the ids that end a
  // text. Without a tokenizer there is no text.
  Generator(StepModel& model, std::optional<text::Tokenizer> tokenizer, std::vector<int32_t> eos);

  // Errors: an empty prompt, one that leaves no room for a token in the context, an id outside the
  // vocabulary, an option out of range, a fault of the engine or of the draft.
  Result<Generation> generate(std::span<const int32_t> prompt, const GenerateOptions& options);

 private:
  Result<void> check(std::span<const int32_t> prompt, const GenerateOptions& options) const;
  // Keeps of the caches what the prompt begins with.
  void rewind(std::span<const int32_t> prompt);
  // Feeds the prompt from where the caches end, and takes the first token.
  Result<void> prefill(std::span<const int32_t> prompt, const GenerateOptions& options,
                       Completion& completion);
  // The last token and as many drafts as are worth it in one launch; takes what it yields.
  Result<void> round(const GenerateOptions& options, Completion& completion, Generation& out);
  // Several launches in one call: of the last token, then of what each predicts.
  Result<void> steps(int64_t count, Completion& completion, Generation& out);
  // Launches of the next call.
  int64_t call_length(const GenerateOptions& options, const Completion& completion) const;
  Result<std::vector<int32_t>> drafts(const GenerateOptions& options,
                                      const Completion& completion) const;
  // One launch of tokens at the positions after what the caches are known to hold. `ahead`: nobody
  // will look at what it predicts.
  Result<void> launch(std::span<const int32_t> tokens, bool ahead = false);

  StepModel& model_;
  StepLimits limits_;
  std::optional<text::Tokenizer> tokenizer_;
  std::vector<int32_t> eos_;
  std::vector<int32_t> held_;  // the tokens whose keys and values are in slot 0
  LaunchTimes times_;
};

}  // namespace gridless::decode
