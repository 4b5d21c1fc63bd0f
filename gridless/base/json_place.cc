#include "gridless/base/json_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace gridless {
namespace {

// Walks over a text that is known to be JSON.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) { space(); }

  size_t at() const { return at_; }

  // To the value under a key, or at an index; false, and anywhere, if there is none.
  bool enter(std::string_view key) {
    if (!take('{')) return false;
    while (peek() == '"') {
      const std::string_view found = string();
      space();
      take(':');
      if (found == key) return true;
      value();
      if (!take(',')) return false;
    }
    return false;
  }
  bool enter(size_t index) {
    if (!take('[') || peek() == ']') return false;
    for (; index > 0; --index) {
      value();
      if (!take(',')) return false;
    }
    return true;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").contains(text_[at_])) ++at_;
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    space();
    return true;
  }
  // What stands between the quotes.
  std::string_view string() {
    const size_t first = ++at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    const size_t last = std::min(at_, text_.size());
    at_ = std::min(last + 1, text_.size());
    return text_.substr(first, last - first);
  }
  // Over a whole value.
  void value() {
    int depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        string();
      } else {
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        ++at_;
        // Numbers and words end before what separates them.
        while (depth == 0 && at_ < text_.size() &&
               !std::string_view(",]} \t\r\n").contains(text_[at_]) && c != '}' && c != ']')
          ++at_;
      }
    } while (depth > 0 && at_ < text_.size());
    space();
  }

  std::string_view text_;
  size_t at_ = 0;
};

// The next step of a path, which loses it.
struct Step {
  std::string_view key;
  std::optional<size_t> index;
};
Step next_step(std::string_view& path) {
  if (path.starts_with('[')) {
    const size_t close = std::min(path.find(']'), path.size() - 1);
    size_t index = 0;
    std::from_chars(path.data() + 1, path.data() + close, index);
    path.remove_prefix(close + 1);
    return {{}, index};
  }
  if (path.starts_with('.')) path.remove_prefix(1);
  const size_t end = std::min(path.find_first_of(".["), path.size());
  const Step out{path.substr(0, end), std::nullopt};
  path.remove_prefix(end);
  return out;
}

}  // namespace

std::string json_place(std::string_view text, std::string_view path) {
  Walk walk(text);
  size_t at = walk.at();
  while (!path.empty()) {
    const Step step = next_step(path);
    if (!(step.index ? walk.enter(*step.index) : walk.enter(step.key))) break;
    at = walk.at();
  }
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::ranges::count(before, '\n');
  return fmt::format("line {}, column {}", line, at - (before.rfind('\n') + 1) + 1);
}

}  // namespace gridless
