// What the three loaders (json, gguf, tiktoken) fill in. Private to the room.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "gridless/text/added_tokens.h"
#include "gridless/text/bpe.h"
#include "gridless/text/pretokenizer.h"
#include "gridless/text/tokenizer.h"
#include "gridless/text/utf8.h"

namespace gridless::text {

struct Tokenizer::Impl {
  std::vector<NormalForm> normalizers;  // applied in this order
  PreTokenizer pre;
  Bpe bpe;
  AddedTokenMatcher raw_added, normalized_added;
  std::vector<std::string> pieces;  // by id
  std::vector<bool> special;        // by id
  std::unordered_map<std::string, int32_t> added_ids;
  std::vector<int32_t> prefix, suffix;  // what add_special puts around a text
  int32_t bos = -1, eos = -1;

  std::string normal_form(std::string_view text) const;
};

// Collects a vocabulary and checks it while it grows.
struct TokenizerBuilder {
  // Ids beyond this are a damaged file, not a vocabulary.
  static constexpr int64_t kMaxId = 1 << 21;

  using Impl = Tokenizer::Impl;
  Impl impl;

  // The piece of an ordinary token, as bytes.
  Result<void> set_piece(int64_t id, std::string bytes);
  // Normalizers must be known before the first added token.
  Result<void> add(AddedToken token);
  Tokenizer finish() &&;
};

}  // namespace gridless::text
