// Tokenizer from tiktoken.model: one "base64 rank" per line. Merging is rank-wise: a pair may join
// when the joined bytes are a token, and that token's rank is the pair's.
#include <charconv>

#include "gridless/text/json_access.h"
#include "gridless/text/tokenizer_impl.h"

namespace gridless::text {
namespace {

constexpr int32_t kReserved = 256;       // special ids after the ranks
constexpr size_t kMaxTokenBytes = 4096;  // longer "tokens" are a damaged file

constexpr std::string_view kKimiPattern =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

bool base64_decode(std::string_view in, std::string& out) {
  uint32_t bits = 0;
  int count = 0;
  while (!in.empty() && in.back() == '=') in.remove_suffix(1);
  for (const char c : in) {
    uint32_t v;
    if (c >= 'A' && c <= 'Z') {
      v = c - 'A';
    } else if (c >= 'a' && c <= 'z') {
      v = c - 'a' + 26;
    } else if (c >= '0' && c <= '9') {
      v = c - '0' + 52;
    } else if (c == '+' || c == '/') {
      v = c == '+' ? 62 : 63;
    } else {
      return false;
    }
    bits = (bits << 6) | v;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count);
    }
  }
  return true;
}

Result<std::vector<std::string>> read_ranks(std::string_view model) {
  std::vector<std::string> tokens;
  size_t line_number = 0;
  for (size_t pos = 0; pos < model.size();) {
    size_t end = model.find('\n', pos);
    if (end == std::string_view::npos) end = model.size();
    std::string_view line = model.substr(pos, end - pos);
    pos = end + 1;
    ++line_number;
    while (!line.empty() && is_space(static_cast<unsigned char>(line.back())))
      line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    std::string bytes;
    size_t rank = 0;
    const std::string_view digits = space == std::string_view::npos ? "" : line.substr(space + 1);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error != std::errc() || stop != digits.data() + digits.size() ||
        !base64_decode(line.substr(0, space), bytes) || bytes.empty()) {
      return input_error("tiktoken.model line {}: expected a base64 token, a space and its rank",
                         line_number);
    }
    if (rank != tokens.size()) {
      return input_error("tiktoken.model line {}: rank {} where {} was due", line_number, rank,
                         tokens.size());
    }
    if (bytes.size() > kMaxTokenBytes) {
      return input_error("tiktoken.model line {}: a token of {} bytes", line_number, bytes.size());
    }
    tokens.push_back(std::move(bytes));
  }
  if (tokens.empty()) return input_error("tiktoken.model is empty");
  return tokens;
}

}  // namespace

Result<Tokenizer> Tokenizer::from_tiktoken(std::string_view model, std::string_view config_text,
                                           std::string_view pattern) {
  TRY(const std::vector<std::string> tokens, read_ranks(model));
  Json config;
  if (!config_text.empty()) {
    TRY(config, parse_json(config_text, "tokenizer_config.json"));
  }
  TokenizerBuilder builder;
  TRY(Regex regex, Regex::compile(pattern.empty() ? kKimiPattern : pattern));
  builder.impl.pre.steps.push_back({std::move(regex), SplitBehavior::kIsolated, false});

  std::unordered_map<std::string, int32_t> ids;
  std::array<int32_t, 256> byte_ids;
  byte_ids.fill(-1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (tokens[i].size() == 1) byte_ids[static_cast<unsigned char>(tokens[i][0])] = id;
    ids.emplace(tokens[i], id);
    TRY_VOID(builder.set_piece(id, tokens[i]));
  }
  std::vector<Bpe::Merge> merges;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    for (size_t cut = 1; cut < tokens[i].size(); ++cut) {
      const auto left = ids.find(tokens[i].substr(0, cut)), right = ids.find(tokens[i].substr(cut));
      if (left != ids.end() && right != ids.end())
        merges.push_back({left->second, right->second, id, id});
    }
  }
  builder.impl.bpe = Bpe(byte_ids, merges, -1);
  builder.impl.bpe.set_whole_words(std::move(ids));

  const auto first = static_cast<int32_t>(tokens.size());
  std::unordered_map<int32_t, AddedToken> named;
  int32_t last = first - 1;
  const Json& added = member(config, "added_tokens_decoder");
  if (added.is_object()) {
    for (const auto& [key, value] : added.items()) {
      int32_t id = -1;
      const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || stop != key.data() + key.size() || id < first ||
          id >= first + kReserved) {
        return input_error("tokenizer_config.json: added token '{}' is not an id in {}..{}", key,
                           first, first + kReserved - 1);
      }
      named[id] = {id, text_of(value, "content"), flag(value, "special", true)};
      last = std::max(last, id);
    }
  }
  for (int32_t id = first; id < first + kReserved; ++id) {
    const auto it = named.find(id);
    TRY_VOID(builder.add(it != named.end()
                             ? it->second
                             : AddedToken{id, fmt::format("<|reserved_token_{}|>", id), true}));
  }
  const auto role = [&](const char* key) {
    const auto it = builder.impl.added_ids.find(text_of(config, key));
    return it == builder.impl.added_ids.end() ? -1 : it->second;
  };
  builder.impl.bos = role("bos_token");
  builder.impl.eos = role("eos_token");
  return std::move(builder).finish();
}

}  // namespace gridless::text
