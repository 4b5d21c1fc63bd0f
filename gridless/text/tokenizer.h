// Tokenizer: text to token ids and back, for byte-level BPE vocabularies.
//
// Encoding: added tokens are cut out (added_tokens.h), the rest is normalised, cut into words
// (pretokenizer.h) and each word merged from its bytes (bpe.h). Bytes that are not UTF-8 are words
// of their own, so any input can be encoded (a byte that the vocabulary lacks is dropped, as in
// Hugging Face tokenizers and llama.cpp). Sources: tokenizer.json, GGUF metadata, tiktoken.model.
//
// Thread contract: immutable once made; every method may be called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::text {

// The tokenizer.ggml.* metadata of a GGUF file; ids are -1 where the file has none.
struct GgufVocab {
  std::string model;  // tokenizer.ggml.model; empty means gpt2
  std::vector<std::string> tokens;
  std::vector<std::string> merges;  // "left right"
  std::vector<int> token_types;  // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
  std::string pre;
  int bos = -1, eos = -1, unk = -1, pad = -1;
  bool add_bos = false;
};

struct EncodeOptions {
  // The text of a special token (<|im_end|>) becomes its id. Off for text from strangers. Added
  // tokens that are not special (<think>) are recognised either way.
  bool specials = true;
  // Add what the model wants around a text (bos).
  bool add_special = false;
};

class Tokenizer {
 public:
  // `config`: the text of tokenizer_config.json beside it, for the names of bos and eos; may be
  // empty.
  static Result<Tokenizer> from_json(std::string_view json, std::string_view config = {});
  static Result<Tokenizer> from_gguf(const GgufVocab& vocab);
  // `pattern` empty: the Kimi pattern. `config`: tokenizer_config.json with added_tokens_decoder;
  // ids between it and the 256th after the ranks that nobody names are <|reserved_token_ID|>.
  static Result<Tokenizer> from_tiktoken(std::string_view model, std::string_view config,
                                         std::string_view pattern = {});

  Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;

  // The bytes of all ids in a row; an id outside the vocabulary is an error.
  Result<std::string> decode_bytes(std::span<const int32_t> ids, bool skip_special) const;
  // The same as text: malformed UTF-8 becomes U+FFFD.
  Result<std::string> decode(std::span<const int32_t> ids, bool skip_special) const;

  // Ids are 0..size()-1; some may name nothing (their piece is empty).
  int32_t size() const;
  // The bytes that `id` stands for, possibly a part of a code point; empty for an unknown id.
  std::string_view piece(int32_t id) const;
  bool is_special(int32_t id) const;
  // The id whose piece is an added token with this text, or -1.
  int32_t added_token(std::string_view content) const;
  int32_t bos() const;  // -1: none
  int32_t eos() const;

 private:
  friend struct TokenizerBuilder;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace gridless::text
