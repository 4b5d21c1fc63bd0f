#include "gridless/ir/text_cursor.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless::ir {
namespace {

constexpr size_t kMostDiagnostics = 100;

// The C locale's classes, whatever the process has set.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$' || c == '.'; }
int hex_value(char c) { return is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10; }

}  // namespace

TextCursor::TextCursor(std::string_view text, std::string_view file) : text_(text), file_(file) {
  line_starts_.push_back(0);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(i + 1);
  }
}

SourceLoc TextCursor::place(size_t at) const {
  const auto next = std::ranges::upper_bound(line_starts_, at);
  const auto line = next - line_starts_.begin();
  const size_t start = line_starts_[static_cast<size_t>(line) - 1];
  return {file_, static_cast<int>(line), static_cast<int>(at - start) + 1};
}

void TextCursor::report(size_t at, std::string message, std::string hint) {
  if (diagnostics_.size() >= kMostDiagnostics) return;
  diagnostics_.push_back({.kind = "invalid_ir",
                          .message = std::move(message),
                          .where = place(at),
                          .hint = std::move(hint)});
}

void TextCursor::fail(size_t at, std::string message, std::string hint) {
  if (failed_) return;
  report(at, std::move(message), std::move(hint));
  failed_ = true;
  pos_ = text_.size();
}

void TextCursor::fail(std::string message, std::string hint) {
  fail(position(), std::move(message), std::move(hint));
}

void TextCursor::skip_space() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++pos_;
    } else if (c == '/' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '/') {
      pos_ = std::min(text_.find('\n', pos_), text_.size());
    } else {
      return;
    }
  }
}

size_t TextCursor::position() {
  skip_space();
  return pos_;
}

bool TextCursor::at_end() { return position() == text_.size(); }

char TextCursor::peek() {
  skip_space();
  return raw_peek();
}

bool TextCursor::peek_is(std::string_view s) {
  skip_space();
  return text_.substr(pos_).starts_with(s);
}

bool TextCursor::accept(std::string_view s) {
  if (!peek_is(s)) return false;
  pos_ += s.size();
  return true;
}

void TextCursor::expect(std::string_view s, std::string_view after) {
  if (accept(s)) return;
  if (at_end()) {
    fail(fmt::format("the text ends where '{}' is expected after {}", s, after),
         "the file is cut off: copy it whole");
  } else {
    fail(fmt::format("expected '{}' after {}", s, after));
  }
}

std::string_view TextCursor::word() {
  const size_t from = position();
  if (!is_letter(raw_peek()) && raw_peek() != '_') return {};
  while (is_word(raw_peek())) ++pos_;
  return slice(from);
}

std::string_view TextCursor::suffix_name(std::string_view what) {
  const size_t from = pos_;
  // A '-' belongs to the name only when no '>' follows: "%a->" would be an arrow.
  while (is_word(raw_peek()) ||
         (raw_peek() == '-' && pos_ + 1 < text_.size() && text_[pos_ + 1] != '>')) {
    ++pos_;
  }
  if (pos_ == from) fail(fmt::format("expected {}", what));
  return failed_ ? std::string_view() : slice(from);
}

std::string TextCursor::quoted() {
  const size_t start = position();
  if (raw_peek() != '"') {
    fail("expected a string in double quotes");
    return {};
  }
  ++pos_;
  std::string out;
  while (true) {
    const char c = raw_peek();
    if (pos_ >= text_.size() || c == '\n') {
      fail(start, "a string is not closed on its line");
      return {};
    }
    ++pos_;
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char n = raw_peek();
    if (n == '"' || n == '\\') {
      out += n;
      ++pos_;
    } else if (n == 'n' || n == 't') {
      out += n == 'n' ? '\n' : '\t';
      ++pos_;
    } else if (is_hex(n) && pos_ + 1 < text_.size() && is_hex(text_[pos_ + 1])) {
      out += static_cast<char>(hex_value(n) * 16 + hex_value(text_[pos_ + 1]));
      pos_ += 2;
    } else {
      fail(pos_, "unknown escape in a string", "write \\\\, \\\", \\n, \\t or two hex digits");
      return {};
    }
  }
}

std::string_view TextCursor::number() {
  const size_t from = position();
  size_t p = pos_;
  const auto at = [&](size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  if (at(p) == '-') ++p;
  if (!is_digit(at(p))) return {};
  if (at(p) == '0' && at(p + 1) == 'x' && is_hex(at(p + 2))) {
    p += 2;
    while (is_hex(at(p))) ++p;
  } else {
    while (is_digit(at(p))) ++p;
    if (at(p) == '.') {
      ++p;
      while (is_digit(at(p))) ++p;
      if (at(p) == 'e' || at(p) == 'E') {
        size_t q = p + 1;
        if (at(q) == '+' || at(q) == '-') ++q;
        if (is_digit(at(q))) {
          while (is_digit(at(q))) ++q;
          p = q;
        }
      }
    }
  }
  pos_ = p;
  return slice(from);
}

int64_t TextCursor::count(int64_t most, std::string_view what) {
  const size_t from = position();
  int64_t v = 0;
  bool too_large = false;
  while (is_digit(raw_peek())) {
    // `most` is at most 2^48, so this cannot overflow before it is seen to be too large.
    if (!too_large) v = v * 10 + (raw_peek() - '0');
    too_large |= v > most;
    ++pos_;
  }
  if (pos_ == from) fail(from, fmt::format("expected {}", what));
  if (too_large) fail(from, fmt::format("{} is larger than {}", what, most));
  return failed_ ? 0 : v;
}

std::string_view TextCursor::balanced() {
  const size_t from = position();
  std::string closers;
  do {
    if (pos_ >= text_.size()) {
      fail(from, "a bracket is never closed");
      return {};
    }
    const char c = text_[pos_];
    if (c == '"') {
      quoted();
      continue;
    }
    if (c == '-' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '>') {
      pos_ += 2;
      continue;
    }
    const size_t open = std::string_view("<([{").find(c);
    if (open != std::string_view::npos) {
      closers += ">)]}"[open];
    } else if (std::string_view(">)]}").find(c) != std::string_view::npos) {
      if (closers.empty() || closers.back() != c) {
        fail(pos_, fmt::format("'{}' closes nothing that is open", c));
        return {};
      }
      closers.pop_back();
    }
    ++pos_;
  } while (!closers.empty() && !failed_);
  return failed_ ? std::string_view() : slice(from);
}

}  // namespace gridless::ir
