// Tokenizer from tokenizer.json (the Hugging Face tokenizers format), the byte-level BPE part of
// it. Whatever else a file asks for is named in an error rather than approximated.
#include "gridless/text/json_access.h"
#include "gridless/text/tokenizer_impl.h"

namespace gridless::text {
namespace {

constexpr int kMaxNesting = 16;  // Sequence within Sequence

Result<void> read_normalizer(const Json& node, std::vector<NormalForm>& out, int depth = 0) {
  if (node.is_null()) return {};
  if (depth > kMaxNesting) return input_error("tokenizer.json: normalizers are nested too deeply");
  const std::string type = text_of(node, "type");
  if (type == "Sequence") {
    for (const Json& child : member(node, "normalizers")) {
      TRY_VOID(read_normalizer(child, out, depth + 1));
    }
    return {};
  }
  if (type == "NFC") {
    out.push_back(NormalForm::kNfc);
  } else if (type == "NFD") {
    out.push_back(NormalForm::kNfd);
  } else if (type == "NFKC") {
    out.push_back(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    out.push_back(NormalForm::kNfkd);
  } else {
    return input_error(
        "tokenizer.json: the normalizer '{}' is not supported; known are NFC, NFD, NFKC, NFKD, "
        "Sequence",
        type);
  }
  return {};
}

Result<SplitBehavior> read_behavior(const std::string& name) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return input_error("tokenizer.json: the split behavior '{}' is not known", name);
}

Result<void> read_split(const Json& node, PreTokenizer& out) {
  TRY(const SplitBehavior behavior, read_behavior(text_of(node, "behavior")));
  const Json& pattern = member(node, "pattern");
  const bool literal = member(pattern, "String").is_string();
  if (!literal && !member(pattern, "Regex").is_string()) {
    return input_error("tokenizer.json: a Split has neither pattern.Regex nor pattern.String");
  }
  TRY(Regex regex, Regex::compile(text_of(pattern, literal ? "String" : "Regex"), literal));
  out.steps.push_back({std::move(regex), behavior, flag(node, "invert", false)});
  return {};
}

Result<void> read_pre_tokenizer(const Json& node, PreTokenizer& out, bool& byte_level,
                                int depth = 0) {
  if (node.is_null()) return {};
  if (depth > kMaxNesting)
    return input_error("tokenizer.json: pre_tokenizers are nested too deeply");
  const std::string type = text_of(node, "type");
  if (type == "Sequence") {
    for (const Json& child : member(node, "pretokenizers")) {
      TRY_VOID(read_pre_tokenizer(child, out, byte_level, depth + 1));
    }
  } else if (type == "Split") {
    TRY_VOID(read_split(node, out));
  } else if (type == "Digits") {
    TRY(Regex regex, Regex::compile(R"(\p{N})"));
    const bool each = flag(node, "individual_digits", false);
    out.steps.push_back(
        {std::move(regex), each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false});
  } else if (type == "ByteLevel") {
    byte_level = true;
    if (flag(node, "add_prefix_space", true)) {
      // It would go before every piece of the steps before; no published tokenizer does that.
      if (!out.steps.empty()) {
        return input_error("tokenizer.json: add_prefix_space after another splitting step");
      }
      out.prefix_space = true;
    }
    if (flag(node, "use_regex", true)) {
      TRY(NamedPreTokenizer gpt2, named_pre_tokenizer("gpt-2"));
      for (auto& step : gpt2.steps.steps) out.steps.push_back(std::move(step));
    }
  } else {
    return input_error(
        "tokenizer.json: the pre_tokenizer '{}' is not supported; known are Split, Digits, "
        "ByteLevel, "
        "Sequence",
        type);
  }
  return {};
}

// TemplateProcessing: what stands before and after the text in the template of a single sequence.
Result<void> read_post_processor(const Json& node, TokenizerBuilder::Impl& impl, int depth = 0);

Result<void> read_template(const Json& node, TokenizerBuilder::Impl& impl) {
  std::vector<int32_t>* side = &impl.prefix;
  for (const Json& piece : member(node, "single")) {
    if (piece.is_object() && piece.contains("Sequence")) {
      side = &impl.suffix;
      continue;
    }
    const std::string name = text_of(member(piece, "SpecialToken"), "id");
    const Json& ids = member(member(member(node, "special_tokens"), name.c_str()), "ids");
    if (!ids.is_array()) {
      return input_error("tokenizer.json: the post_processor's special token '{}' has no ids",
                         name);
    }
    for (const Json& id : ids) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() >= impl.pieces.size()) {
        return input_error("tokenizer.json: the post_processor names an id outside the vocabulary");
      }
      side->push_back(id.get<int32_t>());
    }
  }
  return {};
}

Result<void> read_post_processor(const Json& node, TokenizerBuilder::Impl& impl, int depth) {
  if (depth > kMaxNesting)
    return input_error("tokenizer.json: post_processors are nested too deeply");
  const std::string type = text_of(node, "type");
  if (node.is_null() || type == "ByteLevel") return {};  // ByteLevel only moves offsets
  if (type == "TemplateProcessing") return read_template(node, impl);
  if (type == "Sequence") {
    for (const Json& child : member(node, "processors")) {
      TRY_VOID(read_post_processor(child, impl, depth + 1));
    }
    return {};
  }
  return input_error("tokenizer.json: the post_processor '{}' is not supported", type);
}

Result<void> read_model(const Json& model, TokenizerBuilder& builder) {
  const std::string type = text_of(model, "type");
  if (!type.empty() && type != "BPE") {
    return input_error("tokenizer.json: the model type '{}' is not supported; only BPE is", type);
  }
  if (flag(model, "byte_fallback", false)) {
    return input_error(
        "tokenizer.json: byte_fallback (a SentencePiece vocabulary) is not supported");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!text_of(model, affix).empty()) {
      return input_error("tokenizer.json: model.{} is not supported", affix);
    }
  }
  const Json& vocab = member(model, "vocab");
  if (!vocab.is_object()) return input_error("tokenizer.json: model.vocab is missing");
  const bool whole_words = flag(model, "ignore_merges", false);
  std::unordered_map<std::string_view, int32_t> ids;
  std::unordered_map<std::string, int32_t> words;
  std::array<int32_t, 256> byte_ids;
  byte_ids.fill(-1);
  for (const auto& [token, value] : vocab.items()) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > TokenizerBuilder::kMaxId) {
      return input_error("tokenizer.json: the id of token '{}' is not a number in 0..{}", token,
                         TokenizerBuilder::kMaxId);
    }
    const auto id = value.get<int32_t>();
    std::string bytes;
    if (!byte_level_to_bytes(token, bytes)) bytes = token;
    if (bytes.size() == 1) byte_ids[static_cast<unsigned char>(bytes[0])] = id;
    if (whole_words) words.emplace(bytes, id);
    TRY_VOID(builder.set_piece(id, std::move(bytes)));
  }
  for (auto it = vocab.begin(); it != vocab.end(); ++it) ids.emplace(it.key(), it->get<int32_t>());

  const Json& list = member(model, "merges");
  if (!list.is_array()) return input_error("tokenizer.json: model.merges is missing");
  std::vector<Bpe::Merge> merges;
  merges.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    std::string_view left, right;
    const Json& merge = list[i];
    if (merge.is_string()) {
      const std::string_view text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space != std::string_view::npos) {
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get_ref<const std::string&>();
      right = merge[1].get_ref<const std::string&>();
    }
    if (left.empty() || right.empty()) {
      return input_error("tokenizer.json: merge {} is neither \"a b\" nor [\"a\", \"b\"]", i);
    }
    const std::string both = std::string(left) + std::string(right);
    const auto a = ids.find(left), b = ids.find(right), joined = ids.find(both);
    if (a == ids.end() || b == ids.end() || joined == ids.end()) {
      return input_error(
          "tokenizer.json: merge {} ('{}' + '{}') speaks of a token that model.vocab lacks", i,
          left, right);
    }
    merges.push_back({a->second, b->second, joined->second, static_cast<int32_t>(i)});
  }
  const auto unknown = ids.find(text_of(model, "unk_token"));
  builder.impl.bpe = Bpe(byte_ids, merges, unknown == ids.end() ? -1 : unknown->second);
  builder.impl.bpe.set_whole_words(std::move(words));
  return {};
}

// tokenizer_config.json writes a token as a string or as {"content": ...}.
int32_t config_token(const Json& config, const char* key, const TokenizerBuilder::Impl& impl) {
  const Json& value = member(config, key);
  const std::string name = value.is_string() ? value.get<std::string>() : text_of(value, "content");
  const auto it = impl.added_ids.find(name);
  return it == impl.added_ids.end() ? -1 : it->second;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view config_text) {
  TRY(const Json root, parse_json(json, "tokenizer.json"));
  Json config;
  if (!config_text.empty()) {
    TRY(config, parse_json(config_text, "tokenizer_config.json"));
  }
  TokenizerBuilder builder;
  Impl& impl = builder.impl;
  TRY_VOID(read_normalizer(member(root, "normalizer"), impl.normalizers));
  bool byte_level = false;
  TRY_VOID(read_pre_tokenizer(member(root, "pre_tokenizer"), impl.pre, byte_level));
  if (!byte_level) {
    return input_error(
        "tokenizer.json: the pre_tokenizer has no ByteLevel step; only byte-level BPE is "
        "supported");
  }
  TRY_VOID(read_model(member(root, "model"), builder));
  for (const Json& token : member(root, "added_tokens")) {
    const Json& id = member(token, "id");
    if (!id.is_number_unsigned() || id.get<uint64_t>() > TokenizerBuilder::kMaxId) {
      return input_error("tokenizer.json: an added token has no id in 0..{}",
                         TokenizerBuilder::kMaxId);
    }
    AddedToken added{id.get<int32_t>(), text_of(token, "content"), flag(token, "special", false)};
    added.normalized = flag(token, "normalized", !added.special);
    added.single_word = flag(token, "single_word", false);
    added.lstrip = flag(token, "lstrip", false);
    added.rstrip = flag(token, "rstrip", false);
    TRY_VOID(builder.add(std::move(added)));
  }
  TRY_VOID(read_post_processor(member(root, "post_processor"), impl));
  impl.bos = config_token(config, "bos_token", impl);
  impl.eos = config_token(config, "eos_token", impl);
  return std::move(builder).finish();
}

}  // namespace gridless::text
