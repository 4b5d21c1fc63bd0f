// Pre-tokenisation: the text between special tokens is cut into words, and merges never cross a
// cut. A chain of steps, each of which cuts every piece of the step before (tokenizers' Sequence).
#pragma once

#include <string_view>
#include <vector>

#include "gridless/text/regex.h"

namespace gridless::text {

// What becomes of the stretches a pattern matches (tokenizers' SplitDelimiterBehavior).
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct PreTokenizer {
  struct Step {
    Regex regex;
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;  // the pattern describes the words, not the delimiters
  };
  std::vector<Step> steps;
  bool prefix_space = false;  // ByteLevel's add_prefix_space: text begins with a space

  // `text` is valid UTF-8; the pieces are views into it.
  Result<std::vector<std::string_view>> split(std::string_view text) const;
};

// The patterns that GGUF files name by `tokenizer.ggml.pre`.
struct NamedPreTokenizer {
  PreTokenizer steps;
  bool nfc = false;            // the original tokenizer normalises first; GGUF has no field for it
  bool ignore_merges = false;  // words that are tokens skip merging
};
Result<NamedPreTokenizer> named_pre_tokenizer(std::string_view name);

}  // namespace gridless::text
