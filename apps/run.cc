// gridless run: one completion, streamed, with what it cost.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/common.h"
#include "apps/model_options.h"
#include "apps/prompt_options.h"
#include "gridless/decode/generator.h"

namespace gridless::apps {
namespace {

struct Arguments {
  ModelOptions model;
  decode::GenerateOptions generate;
  PromptOptions prompt;
  std::string draft;
  bool json = false;
};

nlohmann::json to_json(const decode::Generation& g) {
  return {{"prompt_tokens", g.prompt_tokens},
          {"tokens", g.tokens},
          {"text", g.text},
          {"finish_reason", decode::name(g.finish)},
          {"ttft_ms", g.ttft_ms},
          {"tpot_ms", g.tpot_ms},
          {"tokens_per_second", g.tokens_per_second()},
          {"bytes_per_step", g.bytes_per_step},
          {"draft", draft_json(g)}};
}

void print_draft(const decode::Generation& g, const std::string& name) {
  const decode::DraftStatistics& d = *g.draft;
  fmt::print(stderr,
             "draft {}: {} of {} tokens accepted in {} rounds, {:.2f} per round; {} launches after "
             "the prompt\n",
             name, d.accepted, d.proposed, d.rounds, d.mean_accepted(), g.steps);
}

void print_statistics(const decode::Generation& g, const decode::RunnerOptions& options) {
  fmt::print(stderr, "{} token{} of prompt, {} generated ({}); TTFT {:.1f} ms", g.prompt_tokens,
             g.prompt_tokens == 1 ? "" : "s", g.tokens.size(), decode::name(g.finish), g.ttft_ms);
  if (g.tpot_ms > 0)
    fmt::print(stderr, ", TPOT {:.2f} ms ({:.1f} tokens/s)", g.tpot_ms, g.tokens_per_second());
  fmt::print(stderr, "\n{:.1f} MB read per step", g.bytes_per_step / 1e6);
  if (g.tpot_ms > 0 && options.engine != decode::EngineKind::kEmulate) {
    const double rate = g.bytes_per_step / g.step_ms * 1e3;
    fmt::print(stderr, ": {:.2f} GB/s", rate / 1e9);
    if (options.engine == decode::EngineKind::kTpu) {
      const double hbm = model_bandwidth(options).value().bytes_per_second;
      fmt::print(stderr, ", {:.0f} % of what the HBM of {} cores is specified for",
                 rate / hbm * 100, options.cores);
    } else if (const auto machine = model_bandwidth(options)) {
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
  TRY_VOID(a.prompt.check());
  TRY(OpenDraft draft, open_draft(a.draft));
  TRY_VOID(a.generate.sampler.check());
  TRY(const OpenModel model, open_model(a.model));
  TRY(decode::RunnerOptions options,
      runner_options(a.model, model.model->vocab(), model.native, model.packed_cores()));
  options.feature_layers = draft.taps;
  keep_hosts_together(options, a.generate);
  TRY(const std::vector<int32_t> prompt, a.prompt.ids(model));
  if (!a.generate.stop.empty()) TRY_VOID(model.require_tokenizer());
  TRY(options.context, context_for(prompt, a.generate.max_tokens, a.model, *model.model));
  TRY(const std::unique_ptr<decode::StepRunner> runner, load_weights(model, options));
  TRY(a.generate.draft, draft.load(model, *runner));
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
    if (generation.draft) print_draft(generation, a.draft);
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
  add_prompt_options(command, a->prompt);
  command->add_option("--max-tokens", a->generate.max_tokens, "Tokens to generate at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  add_sampler_options(command, a->generate.sampler);
  command
      ->add_option("--stop", a->generate.stop, "Ends the text before this string; may be repeated")
      ->expected(1)
      ->take_all();
  command->add_flag("--ignore-eos", a->generate.ignore_eos, "Go on after an end-of-text token");
  add_steps_option(command, a->generate);
  add_draft_options(command, a->draft, a->generate);
  command->add_flag("--json", a->json,
                    "Print {\"tokens\", \"text\", \"finish_reason\", \"ttft_ms\", ...} at the end");
  set_examples(command,
               {"gridless run smollm2 --chat --prompt 'What is the capital of France?'",
                "gridless run smollm2 --chat --prompt-file edit_this.txt --draft ngram",
                "gridless run model.gguf --prompt 'Once upon a time' --temperature 0.8 --json"});
  command->callback([a, &exit_code] {
    const Result<int> status = run(*a);
    exit_code = status ? *status : report(status.error());
  });
}

}  // namespace gridless::apps
