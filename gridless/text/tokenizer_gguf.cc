// Tokenizer from GGUF metadata (tokenizer.ggml.model "gpt2").
#include <fmt/format.h>

#include "gridless/text/tokenizer_impl.h"

namespace gridless::text {
namespace {

constexpr int kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5;

}  // namespace

Result<Tokenizer> Tokenizer::from_gguf(const GgufVocab& vocab) {
  if (!vocab.model.empty() && vocab.model != "gpt2") {
    return input_error(
        "the tokenizer model '{}' (tokenizer.ggml.model) is not supported; only byte-level BPE "
        "('gpt2') is",
        vocab.model);
  }
  if (vocab.tokens.empty()) return input_error("the GGUF file has no tokenizer.ggml.tokens");
  if (!vocab.token_types.empty() && vocab.token_types.size() != vocab.tokens.size()) {
    return input_error("tokenizer.ggml.token_type has {} entries for {} tokens",
                       vocab.token_types.size(), vocab.tokens.size());
  }
  TokenizerBuilder builder;
  TRY(NamedPreTokenizer pre, named_pre_tokenizer(vocab.pre.empty() ? "default" : vocab.pre));
  builder.impl.pre = std::move(pre.steps);
  if (pre.nfc) builder.impl.normalizers.push_back(NormalForm::kNfc);

  std::unordered_map<std::string_view, int32_t> ids;
  std::unordered_map<std::string, int32_t> words;
  std::array<int32_t, 256> byte_ids;
  byte_ids.fill(-1);
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string& token = vocab.tokens[i];
    const int type = vocab.token_types.empty() ? 1 : vocab.token_types[i];
    if (type == kControl || type == kUserDefined || type == kUnknown) {
      TRY_VOID(builder.add({id, token, type != kUserDefined}));
      continue;
    }
    if (type == kUnused) {  // padding up to the size of the embedding: no text leads to it
      TRY_VOID(builder.set_piece(id, token));
      continue;
    }
    std::string bytes;
    if (!byte_level_to_bytes(token, bytes)) bytes = token;
    if (bytes.size() == 1) byte_ids[static_cast<unsigned char>(bytes[0])] = id;
    if (pre.ignore_merges) words.emplace(bytes, id);
    TRY_VOID(builder.set_piece(id, std::move(bytes)));
    ids.emplace(token, id);
  }

  std::vector<Bpe::Merge> merges;
  merges.reserve(vocab.merges.size());
  for (size_t i = 0; i < vocab.merges.size(); ++i) {
    const std::string_view merge = vocab.merges[i];
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) {
      return input_error("merge {} ('{}') is not two tokens with a space between them", i, merge);
    }
    const auto left = ids.find(merge.substr(0, space)), right = ids.find(merge.substr(space + 1));
    const std::string both =
        std::string(merge.substr(0, space)) + std::string(merge.substr(space + 1));
    const auto joined = ids.find(both);
    if (left == ids.end() || right == ids.end() || joined == ids.end()) {
      return input_error("merge {} ('{}') speaks of a token that tokenizer.ggml.tokens lacks", i,
                         merge);
    }
    merges.push_back({left->second, right->second, joined->second, static_cast<int32_t>(i)});
  }
  const auto known = [&](int id) {
    return id >= 0 && static_cast<size_t>(id) < vocab.tokens.size() ? id : -1;
  };
  // Some vocabularies lack bytes that UTF-8 never or hardly ever has (SmolLM2: U+0004, 0xC0, ...).
  // llama.cpp and the original tokenizers drop those, whatever unknown_token_id says.
  builder.impl.bpe = Bpe(byte_ids, merges, -1);
  builder.impl.bpe.set_whole_words(std::move(words));
  builder.impl.bos = known(vocab.bos);
  builder.impl.eos = known(vocab.eos);
  if (vocab.add_bos && builder.impl.bos >= 0) builder.impl.prefix = {builder.impl.bos};
  return std::move(builder).finish();
}

}  // namespace gridless::text
