// How `run` and `bench draft` are given a prompt.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/model_options.h"

namespace gridless::apps {

struct PromptOptions {
  std::string text, file, tokens, system;
  bool chat = false;
  // Set by the parser: which of the three ways was used.
  CLI::Option *has_text = nullptr, *has_file = nullptr, *has_tokens = nullptr;

  // Errors of the combination, before any file is read.
  Result<void> check() const;
  Result<std::vector<int32_t>> ids(const OpenModel& model) const;
};
void add_prompt_options(CLI::App* command, PromptOptions& options);

// The context for a prompt and `max_tokens` more. Errors: an id that the vocabulary lacks, a prompt
// that does not fit.
Result<int64_t> context_for(const std::vector<int32_t>& prompt, int64_t max_tokens,
                            const ModelOptions& options, const models::Model& model);

}  // namespace gridless::apps
