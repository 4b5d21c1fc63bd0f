#include "gridless/text/added_tokens.h"

#include <algorithm>

#include "gridless/text/utf8.h"

namespace gridless::text {
namespace {

// The code point that ends before `pos`.
Utf8Char utf8_before(std::string_view text, size_t pos) {
  size_t start = pos - 1;
  while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return utf8_at(text, start);
}

}  // namespace

int32_t AddedTokenMatcher::child(int32_t node, unsigned char byte) const {
  const auto& list = nodes_[node].children;
  const auto it =
      std::lower_bound(list.begin(), list.end(), std::pair<unsigned char, int32_t>{byte, -1});
  return it != list.end() && it->first == byte ? it->second : -1;
}

void AddedTokenMatcher::add(const AddedToken& token, std::string content) {
  if (content.empty()) return;
  first_[static_cast<unsigned char>(content[0])] = true;
  int32_t node = 0;
  for (const char c : content) {
    const auto byte = static_cast<unsigned char>(c);
    int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
      auto& list = nodes_[node].children;
      const std::pair<unsigned char, int32_t> entry{byte, next};
      list.insert(std::lower_bound(list.begin(), list.end(), entry), entry);
    }
    node = next;
  }
  nodes_[node].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

std::vector<AddedTokenMatcher::Section> AddedTokenMatcher::split(std::string_view text,
                                                                 bool specials) const {
  std::vector<Section> out;
  size_t done = 0;
  for (size_t pos = 0; pos < text.size();) {
    if (!first_[static_cast<unsigned char>(text[pos])]) {
      ++pos;
      continue;
    }
    int32_t best = -1;
    size_t best_end = pos;
    int32_t node = 0;
    for (size_t i = pos; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node < 0) break;
      if (nodes_[node].token >= 0) {
        best = nodes_[node].token;
        best_end = i + 1;
      }
    }
    if (best < 0) {
      ++pos;
      continue;
    }
    const AddedToken& token = tokens_[best];
    size_t begin = pos, end = best_end;
    pos = best_end;  // a match that is refused below is still stepped over as a whole
    if (token.special && !specials) continue;
    if (token.single_word) {
      const bool word_before = begin > 0 && is_word(utf8_before(text, begin).code_point);
      const bool word_after = end < text.size() && is_word(utf8_at(text, end).code_point);
      if (word_before || word_after) continue;
    }
    while (token.lstrip && begin > done) {
      const Utf8Char c = utf8_before(text, begin);
      if (!is_space(c.code_point)) break;
      begin -= c.size;
    }
    while (token.rstrip && end < text.size()) {
      const Utf8Char c = utf8_at(text, end);
      if (!is_space(c.code_point)) break;
      end += c.size;
    }
    if (begin > done) out.push_back({text.substr(done, begin - done), -1});
    out.push_back({text.substr(begin, end - begin), token.id});
    done = end;
    pos = std::max(pos, end);
  }
  if (done < text.size()) out.push_back({text.substr(done), -1});
  return out;
}

}  // namespace gridless::text
