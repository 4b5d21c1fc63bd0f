// Added tokens: strings that become one id wherever they occur, before any word splitting.
// Semantics of Hugging Face tokenizers: leftmost longest match; `normalized` ones are looked for
// after normalisation, the others in the raw text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridless/text/regex.h"

namespace gridless::text {

struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool special =
      false;  // control tokens: text only where the caller allows it, dropped on decoding
  bool normalized = false;
  bool single_word = false;             // not inside a word
  bool lstrip = false, rstrip = false;  // swallow the white space beside it
};

class AddedTokenMatcher {
 public:
  // `contents[i]` is what to look for (the content, or its normal form) for `tokens[i]`.
  void add(const AddedToken& token, std::string content);

  struct Section {
    std::string_view text;
    int32_t id = -1;  // -1: ordinary text
  };
  // Cuts valid UTF-8 text into sections. With `specials` false the special ones are ordinary text.
  std::vector<Section> split(std::string_view text, bool specials) const;
  bool empty() const { return tokens_.empty(); }

 private:
  // A trie over bytes; children sorted by byte. Node 0 is the root.
  struct Node {
    std::vector<std::pair<unsigned char, int32_t>> children;
    int32_t token = -1;
  };
  int32_t child(int32_t node, unsigned char byte) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
  bool first_[256] = {};
};

}  // namespace gridless::text
