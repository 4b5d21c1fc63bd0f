// Regular expressions of tokenizers, run by PCRE2 (UTF, Unicode properties, JIT).
//
// tokenizer.json files are written for Oniguruma or Rust's regex crates. Where those differ from
// PCRE2 the pattern is rewritten before it is compiled: `\s` and `\w` are Unicode's sets, and the
// set operations
// `[a&&[^b]]` and `[a[bc]]` become lookaheads and plain classes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless::text {

struct Span {
  size_t begin = 0, end = 0;
};

// The PCRE2 form of a pattern; an error names the construct that has none.
Result<std::string> to_pcre2(std::string_view pattern);

// Thread contract: a compiled Regex is immutable and may be shared; each search owns its scratch.
class Regex {
 public:
  // `literal`: the pattern is plain text, no character is special.
  static Result<Regex> compile(std::string_view pattern, bool literal = false);

  // One pass over one text, left to right. `text` must be valid UTF-8 and outlive the search.
  class Search {
   public:
    Search(const Regex& regex, std::string_view text);
    // The next non-empty match: true and `match`, or false at the end. An error when the pattern
    // backtracks beyond the limits (a hostile pattern), never a hang.
    Result<bool> next(Span& match);

   private:
    struct Scratch;
    const Regex& regex_;
    std::string_view text_;
    size_t pos_ = 0;
    std::shared_ptr<Scratch> scratch_;
  };

 private:
  std::shared_ptr<const void> code_;
  std::string source_;
};

}  // namespace gridless::text
