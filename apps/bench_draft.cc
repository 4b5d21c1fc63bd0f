// gridless bench draft: one prompt answered without and with a draft, in turns, in one process.
//
// The answers have to be equal, else there is no figure. The caches keep the prompt, so what is
// timed is decoding alone. What a draft learns about the text ends with a run; what launches cost
// is known from the runs before, so the first pair is told apart from the others.
#include "apps/bench_draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench_figures.h"
#include "apps/common.h"
#include "apps/model_options.h"
#include "apps/prompt_options.h"
#include "gridless/decode/generator.h"

namespace gridless::apps {
namespace {

struct Arguments {
  ModelOptions model;
  PromptOptions prompt;
  decode::GenerateOptions generate;
  std::string draft = "ngram";
  int64_t repeats = 5;
  bool json = false;
};

// One way of decoding, run after run.
struct Runs {
  std::vector<double> wall_ms, cpu_ms;  // per token
  decode::Generation last;

  Result<void> add(decode::Generator& generator, const std::vector<int32_t>& prompt,
                   const decode::GenerateOptions& options) {
    const double cpu = apps::cpu_ms();
    TRY(last, generator.generate(prompt, options));
    if (last.steps == 0)
      return input_error("the answer has one token: there is nothing to measure");
    wall_ms.push_back(last.tpot_ms);
    // With the last row of the prompt, as the clock cannot be read in between.
    cpu_ms.push_back((apps::cpu_ms() - cpu) / static_cast<double>(last.tokens.size()));
    return {};
  }
};

nlohmann::json rates(const std::vector<double>& ms_per_token) {
  return {{"median", 1e3 / median(ms_per_token)},
          {"min", 1e3 / *std::ranges::max_element(ms_per_token)},
          {"max", 1e3 / *std::ranges::min_element(ms_per_token)}};
}

// How many times faster, pair by pair.
nlohmann::json ratios(const std::vector<double>& plain, const std::vector<double>& drafted) {
  std::vector<double> out;
  for (size_t i = 0; i < plain.size(); ++i) out.push_back(plain[i] / drafted[i]);
  return {{"median", median(out)},
          {"min", *std::ranges::min_element(out)},
          {"max", *std::ranges::max_element(out)},
          {"first", out[0]}};
}

nlohmann::json figures(const Arguments& a, const decode::StepRunner& runner, const Runs& plain,
                       const Runs& drafted) {
  return {{"model", a.model.model},
          {"cores", runner.options().cores},
          {"threads", runner.options().threads},
          {"prompt_tokens", plain.last.prompt_tokens},
          {"tokens", plain.last.tokens.size()},
          {"repeats", a.repeats},
          {"plain_tokens_per_second", rates(plain.wall_ms)},
          {"draft_tokens_per_second", rates(drafted.wall_ms)},
          {"speedup", ratios(plain.wall_ms, drafted.wall_ms)},
          {"plain_cpu_ms_per_token", median(plain.cpu_ms)},
          {"draft_cpu_ms_per_token", median(drafted.cpu_ms)},
          {"speedup_by_cpu_time", ratios(plain.cpu_ms, drafted.cpu_ms)},
          {"draft", draft_json(drafted.last)}};
}

void print(const Arguments& a, const nlohmann::json& f) {
  fmt::print("draft {} on {}: {} on {}, prompt of {}, answer of {}, {}\n", a.draft, a.model.model,
             counted(f["cores"], "core"), counted(f["threads"], "thread"),
             counted(f["prompt_tokens"], "token"), counted(f["tokens"], "token"),
             counted(a.repeats, "pair"));
  for (const char* key : {"plain_tokens_per_second", "draft_tokens_per_second"}) {
    fmt::print("  {} {:.2f} tokens/s ({:.2f} to {:.2f})\n", std::string_view(key).substr(0, 5),
               f[key]["median"].get<double>(), f[key]["min"].get<double>(),
               f[key]["max"].get<double>());
  }
  const auto ratio = [&](const char* what, const nlohmann::json& r) {
    fmt::print("  {:.2f} times as fast by {} ({:.2f} to {:.2f}; first pair {:.2f})\n",
               r["median"].get<double>(), what, r["min"].get<double>(), r["max"].get<double>(),
               r["first"].get<double>());
  };
  ratio("the clock", f["speedup"]);
  ratio("CPU time", f["speedup_by_cpu_time"]);
  const nlohmann::json& d = f["draft"];
  fmt::print("  last run: {} of {} drafts accepted in {} rounds, {:.2f} per round; {} launches\n",
             d["accepted"].get<int64_t>(), d["proposed"].get<int64_t>(), d["rounds"].get<int64_t>(),
             d["mean_accepted"].get<double>(), d["launches"].get<int64_t>());
}

Result<void> measure(Arguments& a) {
  TRY_VOID(a.prompt.check());
  TRY_VOID(a.generate.sampler.check());
  TRY(OpenDraft draft, open_draft(a.draft));
  TRY(const OpenModel model, open_model(a.model));
  TRY(decode::RunnerOptions options,
      runner_options(a.model, model.model->vocab(), model.native, model.packed_cores()));
  options.feature_layers = draft.taps;
  TRY(const std::vector<int32_t> prompt, a.prompt.ids(model));
  TRY(options.context, context_for(prompt, a.generate.max_tokens, a.model, *model.model));
  TRY(const std::unique_ptr<decode::StepRunner> runner, load_weights(model, options));
  decode::Generator generator(*runner, model.tokenizer, model.eos);
  decode::GenerateOptions with_draft = a.generate;
  TRY(with_draft.draft, draft.load(model, *runner));
  Runs warm_up, plain, drafted;
  TRY_VOID(warm_up.add(generator, prompt, a.generate));
  Progress progress("measuring", static_cast<uint64_t>(a.repeats), "pairs");
  for (int64_t i = 0; i < a.repeats; ++i) {
    // The order alternates.
    if (i % 2 == 0) TRY_VOID(plain.add(generator, prompt, a.generate));
    TRY_VOID(drafted.add(generator, prompt, with_draft));
    if (i % 2 != 0) TRY_VOID(plain.add(generator, prompt, a.generate));
    if (drafted.last.tokens != plain.last.tokens)
      return machine_error("the draft changed the answer: no figure is given for this run");
    progress.update(static_cast<uint64_t>(i + 1));
  }
  const nlohmann::json object = figures(a, *runner, plain, drafted);
  if (a.json) {
    print_json(object);
  } else {
    print(a, object);
  }
  return {};
}

}  // namespace

void add_bench_draft(CLI::App& bench, int& exit_code) {
  CLI::App* command = bench.add_subcommand(
      "draft", "Speed of one answer with a draft and without, and its lengths");
  const auto a = std::make_shared<Arguments>();
  add_model_options(command, a->model);
  add_prompt_options(command, a->prompt);
  command->add_option("--max-tokens", a->generate.max_tokens, "Tokens of the answer at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24));
  command->add_flag("--ignore-eos", a->generate.ignore_eos, "Go on after an end-of-text token");
  add_sampler_options(command, a->generate.sampler);
  add_draft_options(command, a->draft, a->generate);
  command->add_option("--repeats", a->repeats, "Pairs of runs")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  command->add_flag("--json", a->json, "Print one JSON object instead of text");
  set_examples(command, {"gridless bench draft smollm2 --chat --prompt-file edit_this.txt",
                         "gridless bench draft model.gguf --prompt 'Once upon a time' --json"});
  command->callback([a, &exit_code] {
    const Result<void> done = measure(*a);
    exit_code = done ? kDone : report(done.error());
  });
}

}  // namespace gridless::apps
