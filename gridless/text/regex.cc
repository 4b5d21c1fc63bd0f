#define PCRE2_CODE_UNIT_WIDTH 8
#include "gridless/text/regex.h"

#include <pcre2.h>

#include "gridless/base/check.h"
#include "gridless/text/utf8.h"

namespace gridless::text {
namespace {

// A pattern that needs more steps than this for one match is hostile, not slow: the published
// pre-tokenisers need a handful of steps per byte. The share per byte lets a megabyte of spaces
// pass.
constexpr uint32_t kStepsPerMatch = 1'000'000;
constexpr uint32_t kStepsPerByte = 64;
constexpr uint32_t kStepsCap = 2'000'000'000;
// Backtracking memory of the JIT and of the interpreter it falls back to.
constexpr size_t kJitStackStart = 64 << 10, kJitStackMax = 64 << 20;
constexpr uint32_t kHeapLimitKib = 512 << 10;

const pcre2_code* as_code(const std::shared_ptr<const void>& p) {
  return static_cast<const pcre2_code*>(p.get());
}

std::string pcre2_message(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Search::Scratch {
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  pcre2_jit_stack* stack = nullptr;

  ~Scratch() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

Result<Regex> Regex::compile(std::string_view pattern, bool literal) {
  std::string translated(pattern);
  if (!literal) {
    TRY(translated, to_pcre2(pattern));
  }
  int code = 0;
  PCRE2_SIZE offset = 0;
  const uint32_t options =
      literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()),
                                       translated.size(), options, &code, &offset, nullptr);
  if (compiled == nullptr) {
    return input_error("the pre-tokeniser pattern does not compile at offset {}: {} (pattern: {})",
                       offset, pcre2_message(code), pattern);
  }
  // Without JIT (an architecture that has none) matching still works, only slower.
  (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
  Regex out;
  out.code_ = std::shared_ptr<const void>(compiled, [](const void* p) {
    pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p)));
  });
  out.source_ = std::string(pattern);
  return out;
}

Regex::Search::Search(const Regex& regex, std::string_view text)
    : regex_(regex), text_(text), scratch_(std::make_shared<Scratch>()) {
  scratch_->data = pcre2_match_data_create_from_pattern(as_code(regex.code_), nullptr);
  scratch_->context = pcre2_match_context_create(nullptr);
  GRIDLESS_CHECK(scratch_->data != nullptr && scratch_->context != nullptr, "out of memory");
  const uint64_t steps = kStepsPerMatch + uint64_t{kStepsPerByte} * text.size();
  pcre2_set_match_limit(scratch_->context,
                        static_cast<uint32_t>(std::min<uint64_t>(steps, kStepsCap)));
  pcre2_set_heap_limit(scratch_->context, kHeapLimitKib);
}

Result<bool> Regex::Search::next(Span& match) {
  while (pos_ < text_.size()) {
    const auto run = [&](uint32_t options) {
      // The text was checked once by the caller; checking it again at each match would be
      // quadratic.
      return pcre2_match(as_code(regex_.code_), reinterpret_cast<PCRE2_SPTR>(text_.data()),
                         text_.size(), pos_, options | PCRE2_NO_UTF_CHECK, scratch_->data,
                         scratch_->context);
    };
    int rc = run(0);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && scratch_->stack == nullptr) {
      scratch_->stack = pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr);
      pcre2_jit_stack_assign(scratch_->context, nullptr, scratch_->stack);
      rc = run(0);
    }
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = run(PCRE2_NO_JIT);
    if (rc == PCRE2_ERROR_NOMATCH) {
      pos_ = text_.size();
      return false;
    }
    if (rc < 0) {
      return input_error(
          "the pre-tokeniser pattern gave up at byte {} of {}: {}; the tokenizer file's pattern "
          "backtracks too much (pattern: {})",
          pos_, text_.size(), pcre2_message(rc), regex_.source_);
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(scratch_->data);
    if (ends[1] > ends[0]) {
      match = {ends[0], ends[1]};
      pos_ = ends[1];
      return true;
    }
    // An empty match (or one that \K made odd) tells nothing: step over one code point.
    pos_ = std::max(pos_, ends[1]);
    if (pos_ < text_.size()) pos_ += utf8_at(text_, pos_).size;
  }
  return false;
}

}  // namespace gridless::text
