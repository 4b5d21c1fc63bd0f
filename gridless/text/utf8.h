// UTF-8 as the Unicode standard defines it (table 3-7), with the two habits every tokenizer shares:
// text from outside may hold malformed bytes, and a stream may stop in the middle of a code point.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gridless::text {

enum class Utf8Status {
  kValid,
  kMalformed,   // these bytes can never become a code point, whatever follows
  kIncomplete,  // the text ends inside what may still become a code point
};

// What stands at one position. For malformed and incomplete input `size` is the length of the
// maximal subpart, which becomes exactly one U+FFFD (the practice of CPython, WHATWG and Rust's
// from_utf8_lossy).
struct Utf8Char {
  char32_t code_point = 0xFFFD;
  int size = 0;
  Utf8Status status = Utf8Status::kValid;
};

Utf8Char utf8_at(std::string_view text, size_t pos);
void append_utf8(std::string& out, char32_t code_point);

// The bytes with every malformed or incomplete part replaced by U+FFFD.
std::string to_valid_utf8(std::string_view bytes);
bool is_valid_utf8(std::string_view bytes);

// Number of code points of valid UTF-8 text.
size_t utf8_length(std::string_view text);

// Properties as Unicode defines them. `space` is White_Space, which is Python's str.isspace without
// the separators U+001C..U+001F.
bool is_space(char32_t c);
bool is_word(char32_t c);  // what \w matches: letters, marks, decimal digits, connectors

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
// `text` must be valid UTF-8.
std::string normalize(std::string_view text, NormalForm form);

}  // namespace gridless::text
