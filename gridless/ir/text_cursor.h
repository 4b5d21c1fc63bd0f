// Scanning of MLIR text: characters, names, literals, positions. Used by TextParser only.
//
// The first syntax error ends the reading: it is recorded, the cursor jumps to the end, and every
// further production sees the end of the text. So productions need no error checks of their own.
// Mistakes that do not confuse the syntax (an unknown op) are reported and the reading goes on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/diagnostic.h"

namespace gridless::ir {

class TextCursor {
 public:
  TextCursor(std::string_view text, std::string_view file);

  bool failed() const { return failed_; }
  // A syntax error at `at`: ends the reading. Only the first one is kept.
  void fail(size_t at, std::string message, std::string hint = "");
  void fail(std::string message, std::string hint = "");
  // Any other mistake; at most 100 are kept.
  void report(size_t at, std::string message, std::string hint = "");

  size_t position();  // of the next token
  SourceLoc place(size_t at) const;
  bool at_end();
  char peek();  // the next character that is not space; 0 at the end
  bool peek_is(std::string_view s);
  bool accept(std::string_view s);  // consumes s if it comes next (no word boundary is asked)
  void expect(std::string_view s, std::string_view after);

  // [A-Za-z_][A-Za-z0-9_$.]*; empty if something else comes.
  std::string_view word();
  // What follows %, ^, #, ! or @: [A-Za-z0-9_$.-]+. Fails if there is nothing.
  std::string_view suffix_name(std::string_view what);
  std::string quoted();  // a string literal, unescaped
  // A number as it stands: -?digits, -?0x.., -?digits.digits(e[+-]digits)?. Empty if none.
  std::string_view number();
  // A decimal integer from 0 to `most`.
  int64_t count(int64_t most, std::string_view what);
  // From an opening bracket to its partner, with strings and nested brackets; as it stands.
  std::string_view balanced();

  std::string_view slice(size_t from) const { return text_.substr(from, pos_ - from); }
  size_t raw_position() const { return pos_; }
  void jump(size_t at) { pos_ = at < text_.size() && !failed_ ? at : text_.size(); }
  char raw_peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  void raw_skip() { pos_ += pos_ < text_.size(); }

  Diagnostics take_diagnostics() { return std::move(diagnostics_); }
  bool any_error() const { return !diagnostics_.empty(); }

 private:
  void skip_space();
  std::string_view text_;
  std::string file_;
  size_t pos_ = 0;
  bool failed_ = false;
  std::vector<size_t> line_starts_;
  Diagnostics diagnostics_;
};

}  // namespace gridless::ir
