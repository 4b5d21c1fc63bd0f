#include "gridless/decode/completion.h"

#include <algorithm>

namespace gridless::decode {

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

Completion::Completion(std::span<const int32_t> prompt, const GenerateOptions& options,
                       const std::optional<text::Tokenizer>& tokenizer,
                       std::span<const int32_t> eos, const StepLimits& limits)
    : prompt_(prompt),
      options_(options),
      eos_(eos),
      context_(limits.context),
      sampler_(options.sampler),
      stops_(options.stop) {
  if (!sampler_.is_argmax()) logits_.resize(static_cast<size_t>(limits.vocab));
  if (tokenizer) detokenizer_.emplace(*tokenizer, /*skip_special=*/true);
}

Result<int32_t> Completion::choose(const StepModel& model, int64_t row) {
  TRY_VOID(model.check_logits(row));
  if (sampler_.is_argmax()) return model.argmax(row);
  TRY_VOID(model.logits(row, logits_));
  return sampler_.sample(logits_, prompt_, tokens_);
}

Result<int32_t> Completion::take(const StepModel& model, int64_t row, int64_t length) {
  TRY(const int32_t id, choose(model, row));
  tokens_.push_back(id);
  if (options_.on_token) options_.on_token(id);
  if (!options_.ignore_eos && std::ranges::find(eos_, id) != eos_.end()) {
    finish_ = FinishReason::kStop;
    return id;
  }
  if (detokenizer_) show(stops_.push(detokenizer_->push(id)));
  if (stops_.found()) {
    finish_ = FinishReason::kStop;
  } else if (room() <= 0 || length >= context_) {
    // The token just made needs a position of its own before another one can follow.
    finish_ = FinishReason::kLength;
  }
  return id;
}

void Completion::show(const std::string& piece) {
  if (piece.empty()) return;
  text_ += piece;
  if (options_.on_text) options_.on_text(piece);
}

std::string Completion::take_text() {
  if (detokenizer_ && !stops_.found()) {
    show(stops_.push(detokenizer_->finish()));
    if (!stops_.found()) show(stops_.finish());
  }
  return std::move(text_);
}

}  // namespace gridless::decode
