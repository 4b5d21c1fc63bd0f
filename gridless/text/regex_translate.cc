// Oniguruma / Rust regex syntax to PCRE2: see regex.h.
#include <vector>

#include "gridless/text/regex.h"

namespace gridless::text {
namespace {

// White_Space, as the body of a class. PCRE2's own \s also takes U+180E, which left the property in
// Unicode 6.3.
constexpr std::string_view kSpace =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// \w likewise (Unicode TR18); PCRE2's own takes every number, such as a circled 1, and no marks.
// The Latin-1 superscripts and fractions are words to Oniguruma, the engine of Hugging Face
// tokenizers.
constexpr std::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";

// The body of the class that an escape stands for; empty for every other escape.
std::string_view shorthand(std::string_view escape) {
  if (escape == "\\s" || escape == "\\S") return kSpace;
  if (escape == "\\w" || escape == "\\W") return kWord;
  return {};
}
bool is_negated(std::string_view escape) { return escape == "\\S" || escape == "\\W"; }

constexpr int kMaxNesting = 32;

struct Translator {
  std::string_view in;
  size_t pos = 0;
  int depth = 0;

  // One side of `&&`: the items of a class, negated or not.
  struct Set {
    bool negated = false;
    std::string items;
    std::string str() const { return (negated ? "[^" : "[") + items + "]"; }
  };

  bool at(std::string_view s) const { return in.substr(pos, s.size()) == s; }

  // Copies the escape at `pos` (a backslash and what belongs to it).
  std::string take_escape() {
    std::string out(in.substr(pos, 2));
    pos = std::min(in.size(), pos + 2);
    if (out.size() == 2 && std::string_view("pPxgko").find(out[1]) != std::string_view::npos &&
        pos < in.size() && in[pos] == '{') {
      const size_t close = in.find('}', pos);
      const size_t end = close == std::string_view::npos ? in.size() : close + 1;
      out += in.substr(pos, end - pos);
      pos = end;
    }
    return out;
  }

  // The class that starts at `pos` with '['; leaves `pos` behind its ']'.
  Result<std::string> take_class(Set* plain) {
    if (++depth > kMaxNesting) return input_error("character classes are nested too deeply");
    ++pos;
    Set result;
    if (at("^")) {
      result.negated = true;
      ++pos;
    }
    std::vector<Set> sides(1);
    bool first = true;
    while (true) {
      if (pos >= in.size()) return input_error("a character class has no closing ']'");
      if (in[pos] == ']' && !first) break;
      first = false;
      Set& side = sides.back();
      if (at("&&")) {
        pos += 2;
        sides.emplace_back();
      } else if (at("[:")) {
        const size_t close = in.find(":]", pos);
        if (close == std::string_view::npos) return input_error("'[:' has no closing ':]'");
        side.items += in.substr(pos, close + 2 - pos);
        pos = close + 2;
      } else if (in[pos] == '[') {
        Set nested;
        TRY(const std::string text, take_class(&nested));
        if (nested.items.empty()) {
          return input_error("the class '{}' cannot be nested in another one", text);
        }
        if (side.items.empty()) {
          side = nested;
        } else if (!nested.negated && !side.negated) {
          side.items += nested.items;
        } else {
          return input_error("a union with the negated class '{}' is not supported", text);
        }
      } else if (in[pos] == '\\') {
        const std::string escape = take_escape();
        // A negated shorthand inside a class stays PCRE2's: no class body can express it.
        const bool positive = !shorthand(escape).empty() && !is_negated(escape);
        side.items += positive ? shorthand(escape) : std::string_view(escape);
      } else {
        if (side.negated) return input_error("a union with a negated class is not supported");
        side.items += in[pos++];
      }
    }
    ++pos;
    --depth;
    if (sides.size() == 1) {
      result.items = sides[0].items;
      if (sides[0].negated) result.negated = !result.negated;
      if (plain != nullptr) *plain = result;
      return result.str();
    }
    // [A&&B] is one character of A that is also in B.
    std::string body;
    for (size_t i = 1; i < sides.size(); ++i) {
      if (sides[i].items.empty()) return input_error("'&&' has an empty side");
      const Set bare{false, sides[i].items};
      body += (sides[i].negated ? "(?!" : "(?=") + bare.str() + ")";
    }
    if (sides[0].items.empty()) return input_error("'&&' has an empty side");
    body += sides[0].str();
    return result.negated ? "(?:(?!" + body + ")(?s:.))" : "(?:" + body + ")";
  }
};

}  // namespace

Result<std::string> to_pcre2(std::string_view pattern) {
  Translator t{pattern};
  std::string out;
  while (t.pos < pattern.size()) {
    const char c = pattern[t.pos];
    if (c == '[') {
      TRY(const std::string text, t.take_class(nullptr));
      out += text;
    } else if (c == '\\') {
      const std::string escape = t.take_escape();
      const std::string body(shorthand(escape));
      out += body.empty() ? escape : (is_negated(escape) ? "[^" : "[") + body + "]";
    } else {
      out += c;
      ++t.pos;
    }
  }
  return out;
}

}  // namespace gridless::text
