// gridless bench: how fast a model runs here, as a fraction of what the machine can read.
//
// The machine may be shared, so every figure comes per step: the median over the steps, the
// extremes, and the CPU time of all threads beside the wall time (a thread that waits for another
// one briefly spins; that counts).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench_draft.h"
#include "apps/bench_figures.h"
#include "apps/commands.h"
#include "apps/common.h"
#include "apps/model_options.h"
#include "gridless/models/llama/model.h"
#include "gridless/models/registry.h"

namespace gridless::apps {
namespace {

using decode::Row;
using decode::StepRunner;

struct Arguments {
  ModelOptions model;
  int64_t rows = 1, context = 32, tokens = 64, repeats = 3;
  bool json = false;
};

// The steps before the first one counted: they touch all memory and make the threads warm.
constexpr int64_t kWarmUp = 3;

// synthetic:LAYERSxHIDDENxFFNxHEADSxKVxVOCAB
Result<std::unique_ptr<models::Model>> synthetic(std::string_view spec) {
  std::vector<int64_t> n;
  for (const char* p = spec.begin(); p < spec.end(); ++p) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(p, spec.end(), value);
    if (error != std::errc() || value < 1 || value > (1 << 24) ||
        (stop < spec.end() && *stop != 'x'))
      break;
    n.push_back(value);
    p = stop;
  }
  if (n.size() != 6 || n[1] % n[3] != 0 || n[3] % n[4] != 0 || n[1] / n[3] % 2 != 0) {
    return input_error(
        "'synthetic:{}': write synthetic:LAYERSxHIDDENxFFNxHEADSxKVxVOCAB, heads dividing hidden "
        "into "
        "even widths and kv heads dividing heads, e.g. synthetic:24x1536x4096x12x12x32768",
        spec);
  }
  models::LlamaConfig c;
  c.layers = n[0], c.hidden = n[1], c.ffn = n[2], c.heads = n[3], c.kv_heads = n[4];
  c.vocab = n[5], c.head_dim = c.hidden / c.heads, c.context = 1 << 20, c.tied_head = true;
  return models::llama_model(std::move(c));
}

// The caches hold --context tokens and those of the steps measured.
Result<void> check_context(const Arguments& a, const models::Model& model, int64_t context) {
  if (context <= model.context()) return {};
  return input_error(
      "--context {}{}: the model was trained for at most {} tokens", a.context,
      context > a.context ? fmt::format(" and {} steps after it", context - a.context) : "",
      model.context());
}

// Shapes without weights get random ones: decoding costs the same.
Result<std::unique_ptr<StepRunner>> load(const Arguments& a, int64_t slots, int64_t context) {
  constexpr std::string_view kSynthetic = "synthetic:";
  std::unique_ptr<models::Model> shape;
  if (a.model.model.starts_with(kSynthetic)) {
    TRY(shape, synthetic(std::string_view(a.model.model).substr(kSynthetic.size())));
  } else if (const auto* known = models::find_model(a.model.model); known && known->file.empty()) {
    shape = models::model_of(known->facts);
  }
  if (shape) {
    TRY(decode::RunnerOptions ro, runner_options(a.model, shape->vocab(), {}));
    TRY_VOID(check_context(a, *shape, context));
    ro.context = context;
    ro.slots = slots;
    return StepRunner::random(*shape, ro);
  }
  TRY(const OpenModel model, open_model(a.model));
  TRY(decode::RunnerOptions ro,
      runner_options(a.model, model.model->vocab(), model.native, model.packed_cores()));
  TRY_VOID(check_context(a, *model.model, context));
  ro.context = context;
  ro.slots = slots;
  return load_weights(model, ro);
}

// Any ids will do, but different ones in every row and position.
int32_t some_token(int64_t row, int64_t position, int64_t vocab) {
  return static_cast<int32_t>((row * 104729 + position * 7919 + 17) % vocab);
}

Result<void> prefill(StepRunner& runner, int64_t slot, int64_t tokens) {
  std::vector<Row> rows;
  for (int64_t at = 0; at < tokens; at += static_cast<int64_t>(rows.size())) {
    rows.clear();
    // Powers of two: a launch has no idle rows.
    int64_t n = runner.options().max_rows;
    while (n > tokens - at) n /= 2;
    for (int64_t i = at; i < at + n; ++i) {
      rows.push_back({.token = some_token(slot, i, runner.vocab()),
                      .slot = static_cast<int32_t>(slot),
                      .position = static_cast<int32_t>(i)});
    }
    TRY_VOID(runner.step(rows));
  }
  return {};
}

struct Times {
  std::vector<double> wall_ms, cpu_ms;  // per step

  template <typename Step>
  Result<void> add(Step&& step) {
    const double cpu = apps::cpu_ms();
    const auto start = std::chrono::steady_clock::now();
    TRY_VOID(step());
    wall_ms.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    cpu_ms.push_back(apps::cpu_ms() - cpu);
    return {};
  }
};

std::string format_name(const StepRunner& runner) {
  const models::Formats f = runner.formats();
  if (f.layers == f.head) return weights::spelling(f.layers);
  return fmt::format("{}, head {}", weights::spelling(f.layers), weights::spelling(f.head));
}

// `tokens` of them in a step that reads `bytes`.
Result<nlohmann::json> figures(const Arguments& a, const StepRunner& runner, const Times& times,
                               double tokens, double bytes) {
  const double wall = median(times.wall_ms), cpu = median(times.cpu_ms);
  TRY(const ReadBandwidth machine, model_bandwidth(runner.options()));
  const double rate = bytes / wall * 1e3;
  const double cpu_rate = bytes / (cpu / runner.options().threads) * 1e3;
  return nlohmann::json{{"model", a.model.model},
                        {"format", format_name(runner)},
                        {"cores", runner.options().cores},
                        {"threads", runner.options().threads},
                        {"rows", a.rows},
                        {"context", a.context},
                        {"tokens_per_second",
                         {{"median", tokens * 1e3 / wall},
                          {"min", tokens * 1e3 / *std::ranges::max_element(times.wall_ms)},
                          {"max", tokens * 1e3 / *std::ranges::min_element(times.wall_ms)}}},
                        {"cpu_ms_per_token", cpu / tokens},
                        {"cpu_ms_per_token_min", *std::ranges::min_element(times.cpu_ms) / tokens},
                        {"bytes_per_step", bytes},
                        {"gb_per_s", rate / 1e9},
                        {"read_bandwidth_gb_per_s", machine.bytes_per_second / 1e9},
                        {"read_bandwidth_measured_together", machine.together},
                        {"fraction", rate / machine.bytes_per_second},
                        {"fraction_by_cpu_time", cpu_rate / machine.bytes_per_second}};
}

void print_figures(const char* what, const nlohmann::json& f) {
  const auto& rate = f["tokens_per_second"];
  fmt::print("{} {}, {}: {} on {}, {}, context {}\n", what, f["model"].get<std::string>(),
             f["format"].get<std::string>(), counted(f["cores"], "core"),
             counted(f["threads"], "thread"), counted(f["rows"], "row"),
             f["context"].get<int64_t>());
  fmt::print("  {:.2f} tokens/s ({:.2f} to {:.2f}); CPU time {:.2f} ms per token (least {:.2f})\n",
             rate["median"].get<double>(), rate["min"].get<double>(), rate["max"].get<double>(),
             f["cpu_ms_per_token"].get<double>(), f["cpu_ms_per_token_min"].get<double>());
  fmt::print(
      "  {:.1f} MB per step: {:.2f} GB/s of the {:.1f} this machine reads{}: {:.0f} % by the "
      "clock, {:.0f} % by CPU time\n",
      f["bytes_per_step"].get<double>() / 1e6, f["gb_per_s"].get<double>(),
      f["read_bandwidth_gb_per_s"].get<double>(),
      f["read_bandwidth_measured_together"].get<bool>() ? "" : " (one thread's rate times threads)",
      f["fraction"].get<double>() * 100, f["fraction_by_cpu_time"].get<double>() * 100);
}

// A model that computes nonsense may be fast: its logits must at least be numbers.
Result<void> check_logits(const StepRunner& runner, int64_t row) {
  if (runner.check_logits(row)) return {};
  return machine_error("the logits of row {} are not finite: no figure is given for this run", row);
}

Result<void> bench_decode(const Arguments& a) {
  const int64_t steps = a.tokens + kWarmUp;
  TRY(const std::unique_ptr<StepRunner> runner, load(a, a.rows, a.context + steps));
  const int64_t vocab = runner->vocab();
  {
    Progress progress("filling the context", static_cast<uint64_t>(a.rows * a.context), "tokens");
    for (int64_t slot = 0; slot < a.rows; ++slot) {
      TRY_VOID(prefill(*runner, slot, a.context));
      progress.update(static_cast<uint64_t>((slot + 1) * a.context));
    }
  }
  std::vector<Row> rows;
  for (int64_t r = 0; r < a.rows; ++r) {
    rows.push_back({.token = some_token(r, a.context, vocab),
                    .slot = static_cast<int32_t>(r),
                    .position = static_cast<int32_t>(a.context)});
  }
  Times times;
  double bytes = 0;
  for (int64_t i = 0; i < steps; ++i) {
    Times discarded;
    TRY_VOID((i < kWarmUp ? discarded : times).add([&] { return runner->step(rows); }));
    if (i >= kWarmUp) {
      bytes += static_cast<double>(
          runner->weight_bytes() +
          a.rows * (runner->bytes_per_step(rows[0].position) - runner->weight_bytes()));
    }
    for (int64_t r = 0; r < a.rows; ++r) {
      rows[static_cast<size_t>(r)].token = runner->argmax(r);
      ++rows[static_cast<size_t>(r)].position;
    }
  }
  for (int64_t r = 0; r < a.rows; ++r) TRY_VOID(check_logits(*runner, r));
  TRY(const nlohmann::json object, figures(a, *runner, times, static_cast<double>(a.rows),
                                           bytes / static_cast<double>(a.tokens)));
  if (a.json) {
    print_json(object);
  } else {
    print_figures("decode", object);
  }
  return {};
}

// A step is one whole prompt; its bytes are those of all its launches.
Result<void> bench_prefill(Arguments a) {
  TRY(const std::unique_ptr<StepRunner> runner, load(a, 1, a.context));
  TRY_VOID(prefill(*runner, 0, a.context));
  Times times;
  for (int64_t i = 0; i < a.repeats; ++i) {
    runner->truncate(0, 0);
    TRY_VOID(times.add([&] { return prefill(*runner, 0, a.context); }));
  }
  TRY_VOID(check_logits(*runner, 0));
  a.rows = std::min(a.context, runner->options().max_rows);
  const int64_t launches =
      a.context / a.rows + std::popcount(static_cast<uint64_t>(a.context % a.rows));
  TRY(const nlohmann::json object,
      figures(a, *runner, times, static_cast<double>(a.context),
              static_cast<double>(launches * runner->bytes_per_step(a.context / 2))));
  if (a.json) {
    print_json(object);
  } else {
    print_figures("prefill", object);
  }
  return {};
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand("bench", "Measure a model: speed and share of bandwidth");
  bench->require_subcommand(1);
  set_examples(bench,
               {"gridless bench decode smollm2 --threads 1 --context 512",
                "gridless bench decode synthetic:24x1536x4096x12x12x32768 --format q8 --json"});
  const auto a = std::make_shared<Arguments>();
  const auto add = [&](const char* name, const char* what,
                       Result<void> (*measure)(const Arguments&)) {
    CLI::App* command = bench->add_subcommand(name, what);
    add_model_options(command, a->model);
    command->get_option("MODEL")->description(
        "A model's name, a checkpoint, or synthetic:LAYERSxHIDDENxFFNxHEADSxKVxVOCAB (random "
        "weights, as for a name without weights)");
    command->remove_option(command->get_option("--context"));
    command->add_option("--context", a->context, "Tokens in the context when measuring starts")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
    command->add_flag("--json", a->json, "Print one JSON object instead of text");
    command->callback([a, measure, &exit_code] {
      const Result<void> done = measure(*a);
      exit_code = done ? kDone : report(done.error());
    });
    return command;
  };
  CLI::App* decode = add("decode", "Tokens per second of decoding", bench_decode);
  decode->add_option("--rows", a->rows, "Sequences decoded together")
      ->check(CLI::Range(int64_t{1}, int64_t{64}));
  decode->add_option("--tokens", a->tokens, "Steps measured")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  set_examples(decode, {"gridless bench decode smollm2 --threads 1 --context 512",
                        "gridless bench decode llama_8b --format q4 --rows 8 --json"});
  CLI::App* prefill = add("prefill", "Tokens per second of reading a prompt of --context tokens",
                          [](const Arguments& args) { return bench_prefill(args); });
  prefill->add_option("--repeats", a->repeats, "Prompts measured")
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));
  set_examples(prefill, {"gridless bench prefill smollm2 --context 512",
                         "gridless bench prefill model.gguf --threads 1 --json"});
  add_bench_draft(*bench, exit_code);
}

}  // namespace gridless::apps
