// gridless run: one completion, streamed, with what it cost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/common.h"
#include "apps/model_options.h"
#include "gridless/base/read_bandwidth.h"
#include "gridless/decode/generator.h"

namespace gridless::apps {
namespace {

struct Arguments {
  ModelOptions model;
  decode::GenerateOptions generate;
  std::string prompt, prompt_file, tokens, system;
  bool has_tokens = false, chat = false, json = false;
  int sources = 0;  // of the prompt
};

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

Result<std::vector<int32_t>> prompt_ids(const Arguments& a, const OpenModel& model) {
  if (a.has_tokens) return parse_ids(a.tokens);
  TRY(const text::Tokenizer* tokenizer, model.require_tokenizer());
  std::string prompt = a.prompt;
  if (!a.prompt_file.empty()) {
    TRY(prompt, read_text(a.prompt_file));
  }
  if (!a.chat) return tokenizer->encode(prompt, {.specials = true, .add_special = true});
  TRY(const text::ChatModel chat, text::load_chat_model(model.path));
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (!a.system.empty()) messages.push_back({{"role", "system"}, {"content", a.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return chat_prompt(model, chat, messages);
}

nlohmann::json to_json(const decode::Generation& g) {
  return {{"prompt_tokens", g.prompt_tokens},
          {"tokens", g.tokens},
          {"text", g.text},
          {"finish_reason", decode::name(g.finish)},
          {"ttft_ms", g.ttft_ms},
          {"tpot_ms", g.tpot_ms},
          {"tokens_per_second", g.tokens_per_second()},
          {"bytes_per_step", g.bytes_per_step},
          {"draft", nullptr}};
}

void print_statistics(const decode::Generation& g, const decode::RunnerOptions& options) {
  fmt::print(stderr, "{} token{} of prompt, {} generated ({}); TTFT {:.1f} ms", g.prompt_tokens,
             g.prompt_tokens == 1 ? "" : "s", g.tokens.size(), decode::name(g.finish), g.ttft_ms);
  if (g.tpot_ms > 0)
    fmt::print(stderr, ", TPOT {:.2f} ms ({:.1f} tokens/s)", g.tpot_ms, g.tokens_per_second());
  fmt::print(stderr, "\n{:.1f} MB read per step", g.bytes_per_step / 1e6);
  if (g.tpot_ms > 0 && options.engine == decode::EngineKind::kCpu) {
    const double rate = g.bytes_per_step / g.tpot_ms * 1e3;
    fmt::print(stderr, ": {:.2f} GB/s", rate / 1e9);
    if (const auto machine = read_bandwidth(options.threads)) {
      // One rate or the other, never a mean: a loaded machine may not run all threads at once.
      fmt::print(stderr, ", {:.0f} % of the {:.1f} GB/s that this machine reads with {} thread{}{}",
                 rate / machine->bytes_per_second * 100, machine->bytes_per_second / 1e9,
                 options.threads, options.threads == 1 ? "" : "s",
                 machine->together ? "" : " (one thread's rate times threads: it is loaded)");
    }
  }
  fmt::print(stderr, "\n");
}

// As a shell counts a command that Ctrl-C ended: a script must not take half an answer for a whole.
constexpr int kInterrupted = 130;

// Checks all that needs no weights first: a wrong option should not cost the time to load a model.
// Returns the exit status.
Result<int> run(Arguments& a) {
  if (a.sources != 1) return input_error("give one of --prompt, --prompt-file and --tokens");
  if (a.chat && a.has_tokens)
    return input_error("--chat renders a text, and --tokens gives ids: use one of the two");
  if (!a.system.empty() && !a.chat) return input_error("--system is for --chat: add it");
  TRY_VOID(a.generate.sampler.check());
  TRY(const OpenModel model, open_model(a.model));
  TRY(decode::RunnerOptions options, runner_options(a.model, model.config.vocab, model.native));
  TRY(const std::vector<int32_t> prompt, prompt_ids(a, model));
  if (!a.generate.stop.empty()) TRY_VOID(model.require_tokenizer());
  TRY_VOID(decode::check_prompt(prompt, model.config.vocab));
  const auto length = static_cast<int64_t>(prompt.size());
  TRY(options.context, choose_context(a.model, model.config, length + a.generate.max_tokens));
  if (length > options.context) {
    return input_error(
        "the prompt has {} tokens, more than the context of {}: {}", length, options.context,
        options.context < model.config.context
            ? fmt::format("shorten it, or give --context up to {}", model.config.context)
            : "shorten it, the model was not trained for more");
  }
  TRY(const std::unique_ptr<decode::StepRunner> runner, load_weights(model, options));
  decode::Generator generator(*runner, model.tokenizer, model.eos);

  bool shown = false;
  const auto show = [&shown](std::string_view text) {
    fmt::print("{}", text);
    if (std::fflush(stdout) != 0) CatchInterrupt::flag() = true;  // nobody reads on: end
    shown = true;
  };
  if (!a.json) {
    if (model.tokenizer) {
      a.generate.on_text = show;
    } else {
      fmt::print(stderr, "token ids instead of text: {}\n", model.no_tokenizer);
      a.generate.on_token = [&](int32_t id) { show(fmt::format("{}{}", shown ? "," : "", id)); };
    }
  }
  const CatchInterrupt interrupt;
  a.generate.cancel = &CatchInterrupt::flag();
  TRY(const decode::Generation generation, generator.generate(prompt, a.generate));
  const bool cancelled = generation.finish == decode::FinishReason::kCancelled;
  const int status = cancelled ? kInterrupted : kDone;
  if (a.json) {
    print_json(to_json(generation));
  } else {
    fmt::print("\n");
    std::fflush(stdout);
    print_statistics(generation, options);
  }
  if (cancelled && std::ferror(stdout) == 0) {
    fmt::print(stderr, "interrupted: the answer ends after {} of at most {} tokens\n",
               generation.tokens.size(), a.generate.max_tokens);
  }
  return status;
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Complete a prompt: one kernel launch per token");
  const auto a = std::make_shared<Arguments>();
  add_model_options(command, a->model);
  CLI::Option* prompt = command->add_option("--prompt", a->prompt, "The prompt");
  CLI::Option* file =
      command->add_option("--prompt-file", a->prompt_file, "A file with it ('-': standard input)");
  CLI::Option* tokens = command->add_option("--tokens", a->tokens, "Its token ids, as 1,2,3");
  command->add_flag("--chat", a->chat, "The prompt is a user's message: apply the chat template");
  command->add_option("--system", a->system, "With --chat: the system message");
  command->add_option("--max-tokens", a->generate.max_tokens, "Tokens to generate at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  add_sampler_options(command, a->generate.sampler);
  command
      ->add_option("--stop", a->generate.stop, "Ends the text before this string; may be repeated")
      ->expected(1)
      ->take_all();
  command->add_flag("--ignore-eos", a->generate.ignore_eos, "Go on after an end-of-text token");
  command->add_option("--draft", a->model.draft,
                      "Speculative decoding with a draft model or 'ngram': not available yet");
  command->add_flag("--json", a->json,
                    "Print {\"tokens\", \"text\", \"finish_reason\", \"ttft_ms\", ...} at the end");
  set_examples(command,
               {"gridless run smollm2 --chat --prompt 'What is the capital of France?'",
                "gridless run model.gguf --prompt 'Once upon a time' --temperature 0.8 --json"});
  command->callback([a, prompt, file, tokens, &exit_code] {
    a->has_tokens = tokens->count() > 0;
    a->sources = (prompt->count() > 0) + (file->count() > 0) + a->has_tokens;
    const Result<int> status = run(*a);
    exit_code = status ? *status : report(status.error());
  });
}

}  // namespace gridless::apps
