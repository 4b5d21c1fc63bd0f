#include "gridless/decode/generator.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "gridless/base/check.h"
#include "gridless/decode/stop_strings.h"
#include "gridless/text/detokenizer.h"

namespace gridless::decode {

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool is_set(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(); }

// What becomes of the tokens as text: detokenised, cut at stop strings, handed on.
class TextSink {
 public:
  TextSink(const std::optional<text::Tokenizer>& tokenizer, const GenerateOptions& options)
      : stops_(options.stop), on_text_(options.on_text) {
    if (tokenizer) detokenizer_.emplace(*tokenizer, /*skip_special=*/true);
  }
  void token(int32_t id) {
    if (detokenizer_) show(stops_.push(detokenizer_->push(id)));
  }
  void finish() {
    if (!detokenizer_ || stops_.found()) return;
    show(stops_.push(detokenizer_->finish()));
    if (!stops_.found()) show(stops_.finish());
  }
  bool stopped() const { return stops_.found(); }
  std::string take() { return std::move(text_); }

 private:
  void show(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (on_text_) on_text_(piece);
  }

  std::optional<text::Detokenizer> detokenizer_;
  StopStrings stops_;
  const std::function<void(std::string_view)>& on_text_;
  std::string text_;
};

}  // namespace

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

Result<void> check_prompt(std::span<const int32_t> prompt, int64_t vocab) {
  if (prompt.empty()) return input_error("the prompt is empty: it has to hold at least one token");
  for (const int32_t id : prompt) {
    if (id < 0 || id >= vocab)
      return input_error("token {} of the prompt: the vocabulary has ids 0 to {}", id, vocab - 1);
  }
  return {};
}

Generator::Generator(StepRunner& runner, std::optional<text::Tokenizer> tokenizer,
                     std::vector<int32_t> eos)
    : runner_(runner), tokenizer_(std::move(tokenizer)), eos_(std::move(eos)) {}

Result<void> Generator::check(std::span<const int32_t> prompt,
                              const GenerateOptions& options) const {
  TRY_VOID(options.sampler.check());
  const int64_t vocab = runner_.config().vocab;
  for (const auto& [id, bias] : options.sampler.logit_bias) {
    if (id < 0 || id >= vocab)
      return input_error("logit bias for id {}: the vocabulary has ids 0 to {}", id, vocab - 1);
  }
  if (options.max_tokens < 1)
    return input_error("{} tokens to generate: give at least 1", options.max_tokens);
  TRY_VOID(check_prompt(prompt, vocab));
  const int64_t context = runner_.options().context;
  if (static_cast<int64_t>(prompt.size()) > context) {
    return input_error(
        "the prompt has {} tokens, more than the context of {}: shorten it, or ask for a larger "
        "context",
        prompt.size(), context);
  }
  return {};
}

Result<bool> Generator::feed(std::span<const int32_t> tokens, const std::atomic<bool>* cancel) {
  std::vector<Row> rows;
  while (!tokens.empty()) {
    if (is_set(cancel)) return false;
    const size_t n =
        std::bit_floor(std::min(tokens.size(), static_cast<size_t>(runner_.options().max_rows)));
    rows.clear();
    for (size_t i = 0; i < n; ++i) {
      rows.push_back(
          {.token = tokens[i], .slot = 0, .position = static_cast<int32_t>(held_.size() + i)});
    }
    TRY_VOID(runner_.step(rows));
    held_.insert(held_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n));
    last_row_ = static_cast<int64_t>(n) - 1;
    tokens = tokens.subspan(n);
  }
  return true;
}

Result<Generation> Generator::generate(std::span<const int32_t> prompt,
                                       const GenerateOptions& options) {
  const Clock::time_point start = Clock::now();
  TRY_VOID(check(prompt, options));
  Generation out;
  out.prompt_tokens = static_cast<int64_t>(prompt.size());
  // The last token of the prompt is always computed: its logits are wanted.
  const auto same = std::ranges::mismatch(held_, prompt.first(prompt.size() - 1)).in1;
  held_.erase(same, held_.end());
  out.reused_tokens = static_cast<int64_t>(held_.size());
  runner_.truncate(0, out.reused_tokens);

  Sampler sampler(options.sampler);
  TextSink sink(tokenizer_, options);
  std::vector<float> logits(sampler.is_argmax() ? 0 : static_cast<size_t>(runner_.config().vocab));
  std::span<const int32_t> next = prompt.subspan(held_.size());
  Clock::time_point first;
  int64_t steps = 0;
  for (;;) {
    TRY(const bool fed, feed(next, options.cancel));
    if (!fed) {
      out.finish = FinishReason::kCancelled;
      break;
    }
    if (!out.tokens.empty()) {
      ++steps;
      out.bytes_per_step +=
          static_cast<double>(runner_.bytes_per_step(static_cast<int64_t>(held_.size()) - 1));
    }
    TRY_VOID(runner_.check_logits(last_row_));
    int32_t id = 0;
    if (sampler.is_argmax()) {
      id = runner_.argmax(last_row_);
    } else {
      runner_.logits(last_row_, logits);
      id = sampler.sample(logits, prompt, out.tokens);
    }
    if (out.tokens.empty()) {
      first = Clock::now();
      out.ttft_ms = ms_since(start);
    }
    out.tokens.push_back(id);
    if (options.on_token) options.on_token(id);
    if (!options.ignore_eos && std::ranges::find(eos_, id) != eos_.end()) {
      out.finish = FinishReason::kStop;
      break;
    }
    sink.token(id);
    if (sink.stopped()) {
      out.finish = FinishReason::kStop;
      break;
    }
    // The token just made needs a position of its own before another one can follow.
    if (static_cast<int64_t>(out.tokens.size()) >= options.max_tokens ||
        static_cast<int64_t>(held_.size()) >= runner_.options().context) {
      out.finish = FinishReason::kLength;
      break;
    }
    next = std::span(out.tokens).last(1);
  }
  if (steps > 0) {
    out.tpot_ms = ms_since(first) / static_cast<double>(steps);
    out.bytes_per_step /= static_cast<double>(steps);
  } else {
    out.bytes_per_step =
        static_cast<double>(runner_.bytes_per_step(static_cast<int64_t>(held_.size()) - 1));
  }
  sink.finish();
  out.text = sink.take();
  return out;
}

}  // namespace gridless::decode
