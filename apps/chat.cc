// gridless chat: a conversation. Ctrl-C stops the answer, not the program; what the model has read
// stays in its caches, so a turn costs what is new in it.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/commands.h"
#include "apps/common.h"
#include "apps/model_options.h"
#include "gridless/blocks/step_rows.h"
#include "gridless/decode/generator.h"

namespace gridless::apps {
namespace {

// What a conversation may grow to where --context does not say: caches are only paid for as they
// fill, but not every machine holds the whole context of every model.
constexpr int64_t kDefaultContext = 8192;

struct Arguments {
  ModelOptions model;
  decode::GenerateOptions generate{.max_tokens = 1024};
  std::string draft, system;
};

// Lines of standard input; with a prompt when a person types them.
class LineReader {
 public:
  ~LineReader() { std::free(buffer_); }
  bool terminal() const { return terminal_; }

  // Nothing at the end of the input.
  std::optional<std::string> next() {
    for (;;) {
      if (terminal_) {
        fmt::print("> ");
        std::fflush(stdout);
      }
      errno = 0;
      const ssize_t n = ::getline(&buffer_, &capacity_, stdin);
      if (n >= 0) {
        std::string line(buffer_, static_cast<size_t>(n));
        while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
        return line;
      }
      if (errno != EINTR) return std::nullopt;
      std::clearerr(stdin);  // Ctrl-C while nothing was being answered
      fmt::print("\n(/exit leaves)\n");
    }
  }

 private:
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
  bool terminal_ = ::isatty(STDIN_FILENO) == 1;
};

class Conversation {
 public:
  Conversation(const OpenModel& model, const text::ChatModel& chat, decode::StepRunner& runner,
               const Arguments& arguments)
      : model_(model),
        chat_(chat),
        generator_(runner, model.tokenizer, model.eos),
        options_(arguments.generate),
        system_(arguments.system),
        context_(runner.options().context) {
    options_.cancel = &CatchInterrupt::flag();
    options_.on_text = [](std::string_view text) {
      fmt::print("{}", text);
      std::fflush(stdout);
    };
    reset();
  }

  void reset() {
    messages_ = nlohmann::ordered_json::array();
    if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
  }

  // Answers on stdout. An error leaves the conversation as it was.
  Result<void> answer(const std::string& question) {
    messages_.push_back({{"role", "user"}, {"content", question}});
    CatchInterrupt::flag() = false;
    const auto generation = generate();
    if (!generation || generation->tokens.empty()) {
      messages_.erase(messages_.size() - 1);
      if (!generation) return std::unexpected(generation.error());
      fmt::print("\n");
      return {};
    }
    fmt::print("\n");
    std::fflush(stdout);
    messages_.push_back({{"role", "assistant"}, {"content", generation->text}});
    if (::isatty(STDERR_FILENO) == 1) {
      fmt::print(stderr, "({} tokens, {} of {} read anew, TTFT {:.0f} ms, {:.1f} tokens/s{}{})\n",
                 generation->tokens.size(), generation->prompt_tokens - generation->reused_tokens,
                 generation->prompt_tokens, generation->ttft_ms, generation->tokens_per_second(),
                 generation->draft
                     ? fmt::format(", {:.2f} drafts accepted in each of {} rounds",
                                   generation->draft->mean_accepted(), generation->draft->rounds)
                     : "",
                 generation->finish == decode::FinishReason::kStop
                     ? ""
                     : fmt::format("; ended by {}", decode::name(generation->finish)));
    }
    return {};
  }

 private:
  Result<decode::Generation> generate() {
    TRY(const std::vector<int32_t> prompt, chat_prompt(model_, chat_, messages_));
    if (static_cast<int64_t>(prompt.size()) > context_) {
      return input_error(
          "the conversation has {} tokens, more than the context of {}: {}", prompt.size(),
          context_,
          context_ < model_.model->context()
              ? fmt::format("start again with --context up to {}", model_.model->context())
              : "the model was not trained for more");
    }
    return generator_.generate(prompt, options_);
  }

  const OpenModel& model_;
  const text::ChatModel& chat_;
  decode::Generator generator_;
  decode::GenerateOptions options_;
  std::string system_;
  int64_t context_;
  nlohmann::ordered_json messages_;
};

Result<void> chat(Arguments& a) {
  TRY_VOID(a.generate.sampler.check());
  TRY(OpenDraft draft, open_draft(a.draft));
  TRY(const OpenModel model, open_model(a.model));
  TRY_VOID(model.require_tokenizer());
  TRY(decode::RunnerOptions options,
      runner_options(a.model, model.model->vocab(), model.native, model.packed_cores()));
  options.feature_layers = draft.taps;
  keep_hosts_together(options, a.generate);
  TRY(const text::ChatModel chat, text::load_chat_model(model.path));
  const int64_t most =
      options.programs ? options.programs->slot_pages() * blocks::kPageTokens : kDefaultContext;
  TRY(options.context, choose_context(a.model, *model.model, std::min(kDefaultContext, most)));
  TRY(const std::unique_ptr<decode::StepRunner> runner, load_weights(model, options));
  TRY(a.generate.draft, draft.load(model, *runner));
  Conversation conversation(model, chat, *runner, a);
  LineReader lines;
  if (lines.terminal()) fmt::print("/exit leaves, /reset forgets, Ctrl-C stops an answer.\n");
  const CatchInterrupt interrupt;
  while (const std::optional<std::string> line = lines.next()) {
    if (line->empty()) continue;
    if (*line == "/exit" || *line == "/quit") break;
    if (*line == "/reset") {
      conversation.reset();
    } else if (line->front() == '/' && line->find(' ') == std::string::npos) {
      fmt::print(stderr, "'{}' is no command: /exit and /reset are\n", *line);
    } else if (const auto done = conversation.answer(*line); !done) {
      if (!lines.terminal()) return done;  // a script wants to know
      report(done.error());
      fmt::print(stderr, "(/reset starts a new conversation)\n");
    }
  }
  return {};
}

}  // namespace

void add_chat(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("chat", "Talk with a model");
  const auto a = std::make_shared<Arguments>();
  add_model_options(command, a->model);
  command->get_option("--context")
      ->description(fmt::format("Tokens that the conversation may reach; 0: {}, or the model's own "
                                "context where that is less",
                                kDefaultContext));
  command->add_option("--system", a->system, "The system message");
  command->add_option("--max-tokens", a->generate.max_tokens, "Tokens of one answer at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  add_sampler_options(command, a->generate.sampler);
  add_steps_option(command, a->generate);
  add_draft_options(command, a->draft, a->generate);
  set_examples(command, {"gridless chat smollm2", "gridless chat model.gguf --temperature 0.7"});
  command->callback([a, &exit_code] {
    const Result<void> done = chat(*a);
    exit_code = done ? kDone : report(done.error());
  });
}

}  // namespace gridless::apps
