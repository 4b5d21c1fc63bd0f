#include "gridless/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "gridless/text/jinja/strings.h"
#include "gridless/text/utf8.h"

namespace gridless::text::jinja {
namespace {

bool name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<signed char>(c) < 0;
}
bool digit(char c) { return c >= '0' && c <= '9'; }
bool name_char(char c) { return name_start(c) || digit(c); }

// One newline convention, and not the last newline.
std::string normalise_newlines(std::string_view in) {
  std::string out;
  out.reserve(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == '\r') {
      out += '\n';
      if (i + 1 < in.size() && in[i + 1] == '\n') ++i;
    } else {
      out += in[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalise_newlines(to_valid_utf8(source))) {}

  std::vector<Token> run() {
    while (pos_ < source_.size()) {
      const size_t open = find_open();
      if (open == std::string::npos) {
        text(source_.substr(pos_));
        pos_ = source_.size();
        break;
      }
      enter(open);
    }
    push(Token::Type::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string message) const { throw Fault{std::move(message), line_}; }

  void push(Token::Type type, std::string text) {
    tokens_.push_back({type, std::move(text), line_});
  }

  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    if (to > pos_) line_starting_ = source_[to - 1] == '\n';
    pos_ = to;
  }

  void text(std::string_view s) {
    if (!s.empty()) push(Token::Type::kText, std::string(s));
  }

  size_t find_open() const {
    for (size_t i = pos_; i + 1 < source_.size(); ++i) {
      if (source_[i] == '{' &&
          (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) {
        return i;
      }
    }
    return std::string::npos;
  }

  // The text before a tag, after what the tag's sign and lstrip_blocks take from its end.
  std::string_view before_tag(size_t open, char sign, bool variable) const {
    std::string_view s = std::string_view(source_).substr(pos_, open - pos_);
    if (sign == '-') return strip(s, kRight);
    if (sign == '+' || variable) return s;
    const size_t newline = s.rfind('\n');
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (start == 0 && !line_starting_) return s;
    if (!strip(s.substr(start), kLeft).empty()) return s;
    return s.substr(0, start);
  }

  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  size_t skip_space(size_t at) const {
    const std::string_view rest = std::string_view(source_).substr(at);
    return source_.size() - strip(rest, kLeft).size();
  }

  void enter(size_t open) {
    const char kind = source_[open + 1];
    const char sign = sign_at(open + 2);
    text(before_tag(open, sign, kind == '{'));
    size_t inner = open + 2 + (sign != '\0' ? 1 : 0);
    if (kind == '#') return comment(open, inner);
    if (kind == '%') {
      const size_t word = skip_space(inner);
      if (source_.compare(word, 3, "raw") == 0) {
        const size_t after = skip_space(word + 3);
        const bool dash = source_.compare(after, 3, "-%}") == 0;
        if (dash || source_.compare(after, 2, "%}") == 0) {
          return raw(dash ? skip_space(after + 3) : after + 2);
        }
      }
    }
    advance(inner);
    push(kind == '{' ? Token::Type::kVarBegin : Token::Type::kBlockBegin, "");
    inside(kind == '{');
  }

  // Behind a closing tag: "-" takes all white space, trim_blocks one newline, "+" nothing.
  size_t after_close(size_t close, size_t length, char sign, bool trims) const {
    const size_t end = close + length;
    if (sign == '-') return skip_space(end);
    if (sign != '+' && trims && end < source_.size() && source_[end] == '\n') return end + 1;
    return end;
  }

  void comment(size_t open, size_t inner) {
    const size_t close = source_.find("#}", inner);
    advance(open);
    if (close == std::string::npos) fail("a comment has no closing '#}'");
    const char sign = close > inner ? sign_at(close - 1) : '\0';
    advance(after_close(close, 2, sign, true));
  }

  void raw(size_t begin) {
    advance(begin);
    for (size_t at = begin; (at = source_.find("{%", at)) != std::string::npos; at += 2) {
      const char sign = sign_at(at + 2);
      const size_t word = skip_space(at + 2 + (sign != '\0' ? 1 : 0));
      if (source_.compare(word, 6, "endraw") != 0) continue;
      size_t close = skip_space(word + 6);
      const char end_sign = sign_at(close);
      if (end_sign != '\0') ++close;
      if (source_.compare(close, 2, "%}") != 0) continue;
      text(before_tag(at, sign, false));
      advance(after_close(close, 2, end_sign, true));
      return;
    }
    fail("{% raw %} has no {% endraw %}");
  }

  // Tokens up to the end of a variable or block tag.
  void inside(bool variable) {
    const std::string_view close = variable ? "}}" : "%}";
    std::string balance;
    while (true) {
      advance(skip_space(pos_));
      if (pos_ >= source_.size()) fail(fmt::format("a tag has no closing '{}'", close));
      if (balance.empty()) {
        const char sign = sign_at(pos_);
        const bool signed_close =
            sign != '\0' && !(variable && sign == '+') && source_.compare(pos_ + 1, 2, close) == 0;
        if (signed_close || source_.compare(pos_, 2, close) == 0) {
          push(variable ? Token::Type::kVarEnd : Token::Type::kBlockEnd, "");
          const size_t at = signed_close ? pos_ + 1 : pos_;
          advance(after_close(at, 2, signed_close ? sign : '\0', !variable));
          return;
        }
      }
      const char c = source_[pos_];
      if (digit(c)) {
        number();
      } else if (name_start(c)) {
        size_t end = pos_;
        while (end < source_.size() && name_char(source_[end])) ++end;
        push(Token::Type::kName, source_.substr(pos_, end - pos_));
        advance(end);
      } else if (c == '"' || c == '\'') {
        string(c);
      } else {
        op(balance);
      }
    }
  }

  void op(std::string& balance) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    std::string text(1, source_[pos_]);
    for (const std::string_view two : kTwo) {
      if (source_.compare(pos_, 2, two) == 0) text = two;
    }
    if (std::string_view("+-*/%~[](){}=<>.:|,;").find(text[0]) == std::string_view::npos &&
        text != "!=") {
      const Utf8Char c = utf8_at(source_, pos_);
      fail(fmt::format("unexpected character '{}'", source_.substr(pos_, c.size)));
    }
    const char c = text[0];
    if (c == '(' || c == '[' || c == '{') balance += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (balance.empty() || balance.back() != c) fail(fmt::format("unexpected '{}'", c));
      balance.pop_back();
    }
    push(Token::Type::kOp, text);
    advance(pos_ + text.size());
  }

  void number() {
    std::string digits;
    size_t end = pos_;
    const auto take_digits = [&] {
      while (end < source_.size() &&
             (digit(source_[end]) ||
              (source_[end] == '_' && end + 1 < source_.size() && digit(source_[end + 1])))) {
        if (source_[end] != '_') digits += source_[end];
        ++end;
      }
    };
    int base = 10;
    const char second = pos_ + 1 < source_.size() ? source_[pos_ + 1] : '\0';
    if (source_[pos_] == '0' && (second == 'x' || second == 'X')) base = 16;
    if (source_[pos_] == '0' && (second == 'o' || second == 'O')) base = 8;
    if (source_[pos_] == '0' && (second == 'b' || second == 'B')) base = 2;
    bool real = false;
    if (base != 10) {
      end += 2;
      while (end < source_.size() && (name_char(source_[end]))) {
        if (source_[end] != '_') digits += source_[end];
        ++end;
      }
    } else {
      take_digits();
      const bool after_dot = !tokens_.empty() && tokens_.back().type == Token::Type::kOp &&
                             tokens_.back().text == ".";  // a.0.1 is two subscripts
      if (!after_dot && end + 1 < source_.size() && source_[end] == '.' &&
          digit(source_[end + 1])) {
        real = true;
        digits += '.';
        ++end;
        take_digits();
      }
      if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        size_t e = end + 1;
        if (e < source_.size() && (source_[e] == '+' || source_[e] == '-')) ++e;
        if (e < source_.size() && digit(source_[e])) {
          real = true;
          digits += source_.substr(end, e - end);
          end = e;
          take_digits();
        }
      }
    }
    Token token{real ? Token::Type::kFloat : Token::Type::kInt, source_.substr(pos_, end - pos_),
                line_};
    const char *first = digits.data(), *last = first + digits.size();
    if (real) {
      // Huge and tiny exponents become inf and 0, as in Python.
      token.real = std::strtod(digits.c_str(), nullptr);
    } else {
      const auto [stop, error] = std::from_chars(first, last, token.integer, base);
      if (error != std::errc() || stop != last) {
        fail(fmt::format("'{}' is not an integer of 64 bits", token.text));
      }
    }
    tokens_.push_back(std::move(token));
    advance(end);
  }

  void string(char quote) {
    std::string out;
    size_t i = pos_ + 1;
    const auto hex = [&](size_t count) {
      uint32_t value = 0;
      const char* first = source_.data() + i;
      if (i + count > source_.size()) fail("a string escape is cut short");
      const auto [stop, error] = std::from_chars(first, first + count, value, 16);
      if (error != std::errc() || stop != first + count) fail("a string escape is not hexadecimal");
      i += count;
      const bool surrogate = value >= 0xD800 && value < 0xE000;
      append_utf8(out, surrogate || value > 0x10FFFF ? 0xFFFD : value);
    };
    while (true) {
      if (i >= source_.size()) fail("a string has no closing quote");
      const char c = source_[i++];
      if (c == quote) break;
      if (c != '\\' || i >= source_.size()) {
        out += c;
        continue;
      }
      const char e = source_[i++];
      static constexpr std::string_view kNames = "abfnrtv\\'\"", kValues = "\a\b\f\n\r\t\v\\'\"";
      if (const size_t at = kNames.find(e); at != std::string_view::npos) {
        out += kValues[at];
      } else if (e == 'x') {
        hex(2);
      } else if (e == 'u') {
        hex(4);
      } else if (e == 'U') {
        hex(8);
      } else if (e >= '0' && e <= '7') {
        uint32_t value = e - '0';
        for (int n = 0; n < 2 && i < source_.size() && source_[i] >= '0' && source_[i] <= '7';
             ++n) {
          value = value * 8 + (source_[i++] - '0');
        }
        append_utf8(out, value);
      } else if (e != '\n') {  // a backslash at the end of a line continues it
        out += '\\';
        out += e;
      }
    }
    push(Token::Type::kString, std::move(out));
    advance(i);
  }

  std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace gridless::text::jinja
