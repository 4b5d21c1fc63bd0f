// Byte-pair encoding of one word: start from single bytes, and join the adjacent pair of lowest
// rank until no pair has one (Sennrich et al. 2016; the byte-level alphabet is GPT-2's).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::text {

// GPT-2 writes each byte as one printable code point, so that vocabularies are readable text.
// These two turn such text into bytes and back. `byte_level_to_bytes` is false, and `out`
// untouched, when a code point stands for no byte (added tokens are written plainly).
bool byte_level_to_bytes(std::string_view text, std::string& out);
std::string bytes_to_byte_level(std::string_view bytes);

class Bpe {
 public:
  struct Merge {
    int32_t left = -1, right = -1, joined = -1;
    int32_t rank = 0;  // lower joins first; of equal ranks the leftmost
  };

  // `byte_ids[b]` is the id of the token that is the single byte b, or -1. `unknown` stands for
  // such bytes (-1: they are dropped, as Hugging Face tokenizers does).
  Bpe() = default;
  Bpe(const std::array<int32_t, 256>& byte_ids, const std::vector<Merge>& merges, int32_t unknown);

  // Words that are tokens as they stand skip merging (`ignore_merges`, and tiktoken always).
  void set_whole_words(std::unordered_map<std::string, int32_t> words) {
    words_ = std::move(words);
  }

  // Appends the ids of one word. O(n log n) in the word's length.
  void encode(std::string_view word, std::vector<int32_t>& out) const;

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    int32_t rank = 0, joined = 0;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static uint64_t key(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
           static_cast<uint32_t>(right);
  }
  const Slot* find(int32_t left, int32_t right) const;

  std::array<int32_t, 256> byte_ids_{};
  int32_t unknown_ = -1;
  std::vector<Slot> slots_;  // open addressing: two probes per merge decide the speed of encoding
  int shift_ = 63;
  std::unordered_map<std::string, int32_t> words_;
};

}  // namespace gridless::text
