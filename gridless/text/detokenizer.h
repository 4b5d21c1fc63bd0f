// Streaming detokenisation: ids in, text out as soon as it is certain. Never half a code point.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gridless/text/tokenizer.h"

namespace gridless::text {

// Bytes in, valid UTF-8 out. An incomplete tail is held back; malformed bytes become U+FFFD at
// once, one per maximal subpart, as CPython's incremental decoder with errors="replace" does it.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  // What is still held back can no longer be completed: U+FFFD, or nothing.
  std::string finish();

 private:
  std::string pending_;  // at most three bytes between calls
};

class Detokenizer {
 public:
  Detokenizer(Tokenizer tokenizer, bool skip_special)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // The text that may be shown after `id`, possibly empty. An id that names nothing adds nothing.
  std::string push(int32_t id) {
    if (skip_special_ && tokenizer_.is_special(id)) return {};
    return stream_.push(tokenizer_.piece(id));
  }
  std::string finish() { return stream_.finish(); }

 private:
  Tokenizer tokenizer_;  // shares the vocabulary
  bool skip_special_;
  Utf8Stream stream_;
};

}  // namespace gridless::text
