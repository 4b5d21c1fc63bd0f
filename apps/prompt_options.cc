#include "apps/prompt_options.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "apps/common.h"
#include "gridless/decode/generator.h"

namespace gridless::apps {

void add_prompt_options(CLI::App* command, PromptOptions& o) {
  o.has_text = command->add_option("--prompt", o.text, "The prompt");
  o.has_file = command->add_option("--prompt-file", o.file, "A file with it ('-': standard input)");
  o.has_tokens = command->add_option("--tokens", o.tokens, "Its token ids, as 1,2,3");
  command->add_flag("--chat", o.chat, "The prompt is a user's message: apply the chat template");
  command->add_option("--system", o.system, "With --chat: the system message");
}

Result<void> PromptOptions::check() const {
  const auto given = [](const CLI::Option* option) { return option->count() > 0 ? 1 : 0; };
  if (given(has_text) + given(has_file) + given(has_tokens) != 1)
    return input_error("give one of --prompt, --prompt-file and --tokens");
  if (chat && given(has_tokens))
    return input_error("--chat renders a text, and --tokens gives ids: use one of the two");
  if (!system.empty() && !chat) return input_error("--system is for --chat: add it");
  return {};
}

namespace {

// "1,2,3", with or without spaces.
Result<std::vector<int32_t>> parse_ids(std::string_view list) {
  constexpr std::string_view kBetween = ", \t\n";
  std::vector<int32_t> ids;
  for (size_t at = list.find_first_not_of(kBetween); at != std::string_view::npos;) {
    const size_t end = std::min(list.find_first_of(kBetween, at), list.size());
    const std::string_view word = list.substr(at, end - at);
    int32_t id = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || stop != word.data() + word.size())
      return input_error("--tokens: '{}' is not a token id; write ids as 1,2,3", word);
    ids.push_back(id);
    at = list.find_first_not_of(kBetween, end);
  }
  return ids;
}

}  // namespace

Result<std::vector<int32_t>> PromptOptions::ids(const OpenModel& model) const {
  if (has_tokens->count() > 0) return parse_ids(tokens);
  TRY(const text::Tokenizer* tokenizer, model.require_tokenizer());
  std::string prompt = text;
  if (!file.empty()) {
    TRY(prompt, read_text(file));
  }
  if (!chat) return tokenizer->encode(prompt, {.specials = true, .add_special = true});
  TRY(const text::ChatModel chat_model, text::load_chat_model(model.path));
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!system.empty()) messages.push_back({{"role", "system"}, {"content", system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return chat_prompt(model, chat_model, messages);
}

Result<int64_t> context_for(const std::vector<int32_t>& prompt, int64_t max_tokens,
                            const ModelOptions& options, const models::Model& model) {
  TRY_VOID(decode::check_prompt(prompt, model.vocab()));
  const int64_t length = std::ssize(prompt);
  TRY(const int64_t context, choose_context(options, model, length + max_tokens));
  if (length <= context) return context;
  return input_error("the prompt has {} tokens, more than the context of {}: {}", length, context,
                     context < model.context()
                         ? fmt::format("shorten it, or give --context up to {}", model.context())
                         : "shorten it, the model was not trained for more");
}

}  // namespace gridless::apps
