#include "gridless/decode/generator.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "gridless/base/check.h"

namespace gridless::decode {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(); }

}  // namespace

Result<void> check_prompt(std::span<const int32_t> prompt, int64_t vocab) {
  if (prompt.empty()) return input_error("the prompt is empty: it has to hold at least one token");
  for (const int32_t id : prompt) {
    if (id < 0 || id >= vocab)
      return input_error("token {} of the prompt: the vocabulary has ids 0 to {}", id, vocab - 1);
  }
  return {};
}

Generator::Generator(StepModel& model, std::optional<text::Tokenizer> tokenizer,
                     std::vector<int32_t> eos)
    : model_(model),
      limits_(model.limits()),
      tokenizer_(std::move(tokenizer)),
      eos_(std::move(eos)) {}

Result<void> Generator::check(std::span<const int32_t> prompt,
                              const GenerateOptions& options) const {
  TRY_VOID(options.sampler.check());
  for (const auto& [id, bias] : options.sampler.logit_bias) {
    if (id < 0 || id >= limits_.vocab) {
      return input_error("logit bias for id {}: the vocabulary has ids 0 to {}", id,
                         limits_.vocab - 1);
    }
  }
  if (options.max_tokens < 1)
    return input_error("{} tokens to generate: give at least 1", options.max_tokens);
  if (options.draft_tokens < 1)
    return input_error("{} draft tokens per launch: give at least 1", options.draft_tokens);
  if (options.steps_per_call < 1)
    return input_error("{} steps per call: give at least 1", options.steps_per_call);
  TRY_VOID(check_prompt(prompt, limits_.vocab));
  if (std::ssize(prompt) > limits_.context) {
    return input_error(
        "the prompt has {} tokens, more than the context of {}: shorten it, or ask for a larger "
        "context",
        prompt.size(), limits_.context);
  }
  return {};
}

void Generator::rewind(std::span<const int32_t> prompt) {
  // The last token of the prompt is always computed: its logits are wanted.
  const auto same = std::ranges::mismatch(held_, prompt.first(prompt.size() - 1)).in1;
  held_.resize(static_cast<size_t>(model_.truncate(0, same - held_.begin())));
}

Result<void> Generator::launch(std::span<const int32_t> tokens, bool ahead) {
  std::vector<Row> rows;
  for (const int32_t token : tokens) {
    rows.push_back(
        {.token = token, .slot = 0, .position = static_cast<int32_t>(held_.size() + rows.size())});
  }
  const Clock::time_point start = Clock::now();
  TRY_VOID(ahead ? model_.step_ahead(rows) : model_.step(rows));
  times_.add(static_cast<int64_t>(std::bit_ceil(rows.size())), ms_since(start));
  return {};
}

Result<void> Generator::prefill(std::span<const int32_t> prompt, const GenerateOptions& options,
                                Completion& completion) {
  for (;;) {
    if (is_set(options.cancel)) {
      completion.cancel();
      return {};
    }
    const std::span<const int32_t> rest = prompt.subspan(held_.size());
    const size_t n = std::bit_floor(std::min(rest.size(), static_cast<size_t>(limits_.max_rows)));
    const bool reads = options.draft != nullptr && options.draft->reads_features();
    TRY_VOID(launch(rest.first(n), n < rest.size() && !reads));
    if (reads) TRY_VOID(options.draft->read(model_, std::ssize(held_), static_cast<int64_t>(n)));
    held_.insert(held_.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(n));
    if (n < rest.size()) continue;
    TRY(const int32_t first,
        completion.take(model_, static_cast<int64_t>(n) - 1, std::ssize(held_)));
    return options.draft ? options.draft->append({&first, 1}) : Result<void>();
  }
}

Result<std::vector<int32_t>> Generator::drafts(const GenerateOptions& options,
                                               const Completion& completion) const {
  // One row is the last token's; the token after the drafts has to fit, too.
  const int64_t most =
      std::min({options.draft_tokens, limits_.max_rows - 1, limits_.pending_rows - 1,
                completion.room() - 1, limits_.context - std::ssize(held_) - 1});
  if (options.draft == nullptr || most < 1) return std::vector<int32_t>();
  TRY(Proposal proposal, options.draft->propose(most));
  GRIDLESS_CHECK(std::ssize(proposal.tokens) <= most &&
                 proposal.odds.size() == proposal.tokens.size());
  if (options.adapt_draft)
    proposal.tokens.resize(static_cast<size_t>(drafts_worth_verifying(proposal.odds, times_)));
  return std::move(proposal.tokens);
}

Result<void> Generator::round(const GenerateOptions& options, Completion& completion,
                              Generation& out) {
  const auto before = completion.tokens().size();
  TRY(std::vector<int32_t> rows, drafts(options, completion));
  rows.insert(rows.begin(), completion.tokens().back());
  TRY_VOID(launch(rows));
  ++out.steps;
  out.bytes_per_step +=
      static_cast<double>(model_.bytes_per_step(std::ssize(held_) + std::ssize(rows) - 1));
  // What a row predicts counts as long as the tokens of all rows before it turned out right.
  size_t read = 0, accepted = 0;
  for (bool go_on = true; go_on; ++read) {
    held_.push_back(rows[read]);
    TRY(const int32_t id, completion.take(model_, static_cast<int64_t>(read), std::ssize(held_)));
    const bool is_drafted = read + 1 < rows.size() && rows[read + 1] == id;
    accepted += is_drafted ? 1 : 0;
    go_on = is_drafted && !completion.finish();
  }
  // Before the model forgets anything: the features are those of this launch.
  const auto rows_read = static_cast<int64_t>(read);
  if (options.draft != nullptr)
    TRY_VOID(options.draft->read(model_, std::ssize(held_) - rows_read, rows_read));
  if (read < rows.size()) model_.truncate(0, std::ssize(held_));
  if (options.draft == nullptr) return {};
  if (rows.size() > 1) {
    ++out.draft->rounds;
    out.draft->proposed += std::ssize(rows) - 1;
    out.draft->accepted += static_cast<int64_t>(accepted);
  }
  return options.draft->append(std::span(completion.tokens()).subspan(before));
}

int64_t Generator::call_length(const GenerateOptions& options, const Completion& completion) const {
  if (options.draft != nullptr || !completion.is_greedy()) return 1;
  return std::min({options.steps_per_call, completion.room(), limits_.context - std::ssize(held_)});
}

Result<void> Generator::steps(int64_t count, Completion& completion, Generation& out) {
  const Row first = {.token = completion.tokens().back(),
                     .slot = 0,
                     .position = static_cast<int32_t>(held_.size())};
  TRY_VOID(model_.chain(first, count));
  for (int64_t n = 0; n < count; ++n) {
    ++out.steps;
    out.bytes_per_step += static_cast<double>(model_.bytes_per_step(first.position + n));
  }
  for (int64_t n = 0; n < count && !completion.finish(); ++n) {
    held_.push_back(completion.tokens().back());
    TRY_VOID(completion.take(model_, n, std::ssize(held_)));
  }
  // What was computed beyond the end is forgotten; a recurrent state may have to start again.
  held_.resize(static_cast<size_t>(model_.truncate(0, std::ssize(held_))));
  return {};
}

Result<Generation> Generator::generate(std::span<const int32_t> prompt,
                                       const GenerateOptions& options) {
  const Clock::time_point start = Clock::now();
  TRY_VOID(check(prompt, options));
  Generation out;
  out.prompt_tokens = std::ssize(prompt);
  rewind(prompt);
  out.reused_tokens = std::ssize(held_);
  if (options.draft) {
    out.draft.emplace();
    TRY_VOID(options.draft->start(prompt));
  }

  Completion completion(prompt, options, tokenizer_, eos_, limits_);
  TRY_VOID(prefill(prompt, options, completion));
  const Clock::time_point first = Clock::now();
  if (!completion.tokens().empty()) out.ttft_ms = ms_since(start);
  while (!completion.finish()) {
    if (is_set(options.cancel)) {
      completion.cancel();
    } else if (const int64_t count = call_length(options, completion); count > 1) {
      TRY_VOID(steps(count, completion, out));
    } else {
      TRY_VOID(round(options, completion, out));
    }
  }
  if (out.steps > 0) {
    const double ms = ms_since(first);
    out.step_ms = ms / static_cast<double>(out.steps);
    out.tpot_ms = ms / static_cast<double>(completion.tokens().size() - 1);
    out.bytes_per_step /= static_cast<double>(out.steps);
  } else {
    out.bytes_per_step = static_cast<double>(model_.bytes_per_step(std::ssize(held_) - 1));
  }
  out.text = completion.take_text();
  out.tokens = completion.tokens();
  out.finish = *completion.finish();
  return out;
}

}  // namespace gridless::decode
