#include "gridless/text/tokenizer.h"

#include "gridless/text/tokenizer_impl.h"

namespace gridless::text {

std::string Tokenizer::Impl::normal_form(std::string_view text) const {
  std::string out(text);
  for (const NormalForm form : normalizers) out = normalize(out, form);
  return out;
}

Result<void> TokenizerBuilder::set_piece(int64_t id, std::string bytes) {
  if (id < 0 || id > kMaxId) {
    return input_error("token id {} is outside 0..{}; the tokenizer file is damaged", id, kMaxId);
  }
  const auto index = static_cast<size_t>(id);
  if (index >= impl.pieces.size()) {
    impl.pieces.resize(index + 1);
    impl.special.resize(index + 1, false);
  }
  impl.pieces[index] = std::move(bytes);
  return {};
}

Result<void> TokenizerBuilder::add(AddedToken token) {
  TRY_VOID(set_piece(token.id, token.content));
  impl.special[token.id] = token.special;
  if (token.content.empty()) return {};
  if (!is_valid_utf8(token.content)) {
    return input_error("the added token with id {} is not UTF-8", token.id);
  }
  impl.added_ids[token.content] = token.id;
  if (token.normalized) {
    impl.normalized_added.add(token, impl.normal_form(token.content));
  } else {
    impl.raw_added.add(token, token.content);
  }
  return {};
}

Tokenizer TokenizerBuilder::finish() && {
  Tokenizer out;
  out.impl_ = std::make_shared<const Tokenizer::Impl>(std::move(impl));
  return out;
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const Impl& impl = *impl_;
  std::vector<int32_t> ids;
  if (options.add_special) ids = impl.prefix;

  const auto encode_words = [&](std::string_view section) -> Result<void> {
    std::string spaced;
    if (impl.pre.prefix_space && !section.starts_with(' ')) {
      spaced = " " + std::string(section);
      section = spaced;
    }
    TRY(const std::vector<std::string_view> words, impl.pre.split(section));
    for (const std::string_view word : words) impl.bpe.encode(word, ids);
    return {};
  };
  const auto encode_valid = [&](std::string_view valid) -> Result<void> {
    for (const auto& raw : impl.raw_added.split(valid, options.specials)) {
      if (raw.id >= 0) {
        ids.push_back(raw.id);
        continue;
      }
      std::string normal;
      std::string_view section = raw.text;
      if (!impl.normalizers.empty()) {
        normal = impl.normal_form(section);
        section = normal;
      }
      for (const auto& part : impl.normalized_added.split(section, options.specials)) {
        if (part.id >= 0) {
          ids.push_back(part.id);
        } else {
          TRY_VOID(encode_words(part.text));
        }
      }
    }
    return {};
  };

  for (size_t pos = 0; pos < text.size();) {
    size_t end = pos;
    bool valid = true;
    while (end < text.size()) {
      const Utf8Char c = utf8_at(text, end);
      const bool ok = c.status == Utf8Status::kValid;
      if (end == pos) valid = ok;
      if (ok != valid) break;
      end += c.size;
    }
    const std::string_view run = text.substr(pos, end - pos);
    if (valid) {
      TRY_VOID(encode_valid(run));
    } else {
      impl.bpe.encode(run, ids);
    }
    pos = end;
  }
  if (options.add_special) ids.insert(ids.end(), impl.suffix.begin(), impl.suffix.end());
  return ids;
}

Result<std::string> Tokenizer::decode_bytes(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) {
      return input_error("token id {} is outside the vocabulary (0..{})", id, size() - 1);
    }
    if (skip_special && is_special(id)) continue;
    out += piece(id);
  }
  return out;
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  TRY(const std::string bytes, decode_bytes(ids, skip_special));
  return to_valid_utf8(bytes);
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(impl_->pieces.size()); }

std::string_view Tokenizer::piece(int32_t id) const {
  return id >= 0 && id < size() ? std::string_view(impl_->pieces[id]) : std::string_view();
}

bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < size() && impl_->special[id];
}

int32_t Tokenizer::added_token(std::string_view content) const {
  const auto it = impl_->added_ids.find(std::string(content));
  return it == impl_->added_ids.end() ? -1 : it->second;
}

int32_t Tokenizer::bos() const { return impl_->bos; }
int32_t Tokenizer::eos() const { return impl_->eos; }

}  // namespace gridless::text
