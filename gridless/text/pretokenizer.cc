#include "gridless/text/pretokenizer.h"

#include <array>
#include <initializer_list>

namespace gridless::text {

namespace {

struct Part {
  Span span;
  bool matched = false;
};

// Matches and the gaps between them, in order; together they are the whole text.
Result<std::vector<Part>> partition(const PreTokenizer::Step& step, std::string_view text) {
  std::vector<Part> parts;
  Regex::Search search(step.regex, text);
  size_t done = 0;
  Span match;
  while (true) {
    TRY(const bool found, search.next(match));
    if (!found) break;
    if (match.begin > done) parts.push_back({{done, match.begin}, step.invert});
    parts.push_back({match, !step.invert});
    done = match.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, step.invert});
  return parts;
}

void emit(SplitBehavior behavior, const std::vector<Part>& parts, std::string_view text,
          std::vector<std::string_view>& out) {
  const auto view = [&](Span s) { return text.substr(s.begin, s.end - s.begin); };
  Span open;  // the piece under construction, for the merging behaviours
  const auto flush = [&] {
    if (open.end > open.begin) out.push_back(view(open));
  };
  bool last_matched = false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& p = parts[i];
    bool joins = false;
    switch (behavior) {
      case SplitBehavior::kRemoved:
        if (!p.matched) out.push_back(view(p.span));
        continue;
      case SplitBehavior::kIsolated:
        out.push_back(view(p.span));
        continue;
      case SplitBehavior::kMergedWithPrevious:
        joins = i > 0 && p.matched && !last_matched;
        break;
      case SplitBehavior::kMergedWithNext:
        joins = i > 0 && last_matched && !p.matched;
        break;
      case SplitBehavior::kContiguous:
        joins = i > 0 && p.matched == last_matched;
        break;
    }
    if (!joins) {
      flush();
      open.begin = p.span.begin;
    }
    open.end = p.span.end;
    last_matched = p.matched;
  }
  flush();
}

struct Named {
  std::string_view name;
  bool nfc, ignore_merges;
  std::array<std::string_view, 4> patterns;
};

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr Named kNamed[] = {
    {"gpt-2", false, false, {kGpt2}},
    {"smollm", false, false, {R"(\p{N})", kGpt2}},
    {"starcoder", false, false, {R"(\p{N})", kGpt2}},
    {"qwen2", true, false, {kQwen2}},
    {"qwen35", true, false, {kQwen35}},
    {"llama-bpe", false, true, {kLlama3}},
    {"llama3", false, true, {kLlama3}},
    // What converters write when they did not know the tokenizer.
    {"default",
     false,
     false,
     {R"([\p{P}\$\+<=>\^~\|]+)",
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))", R"(\p{N}+)",
      "[0-9][0-9][0-9]"}},
};

}  // namespace

Result<std::vector<std::string_view>> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const Step& step : steps) {
    std::vector<std::string_view> next;
    for (const std::string_view piece : pieces) {
      TRY(const std::vector<Part> parts, partition(step, piece));
      emit(step.behavior, parts, piece, next);
    }
    pieces = std::move(next);
  }
  return pieces;
}

Result<NamedPreTokenizer> named_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const Named& n : kNamed) {
    known += (known.empty() ? "" : ", ") + std::string(n.name);
    if (n.name != name) continue;
    NamedPreTokenizer out;
    out.nfc = n.nfc;
    out.ignore_merges = n.ignore_merges;
    for (const std::string_view pattern : n.patterns) {
      if (pattern.empty()) continue;
      TRY(Regex regex, Regex::compile(pattern));
      out.steps.steps.push_back({std::move(regex), SplitBehavior::kIsolated, false});
    }
    return out;
  }
  return input_error(
      "the pre-tokeniser '{}' (tokenizer.ggml.pre) is not known; known are {}. A tokenizer.json of "
      "the "
      "same model works as well",
      name, known);
}

}  // namespace gridless::text
