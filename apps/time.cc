// gridless time: how long a kernel or a step takes on a slice, predicted.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "apps/commands.h"
#include "apps/common.h"
#include "apps/kernel_operands.h"
#include "apps/kernel_target.h"
#include "apps/model_target.h"
#include "apps/source_tensors.h"
#include "apps/target.h"
#include "gridless/chips/slice.h"
#include "gridless/chips/tpu7x.h"
#include "gridless/emulate/check/capacity.h"
#include "gridless/time/predict.h"
#include "gridless/time/trace.h"

namespace gridless::apps {
namespace {

using nlohmann::json;
using time::Parts;
using time::Prediction;

struct Arguments {
  std::string target;
  std::string call;
  std::string slice;
  std::string scalars;
  std::string parameters = "nominal";
  std::vector<std::string> what_if;
  std::string trace, html;
  int cores = 0;
  int seeds = 1;
  int64_t max_steps = time::PredictOptions().max_steps;
  bool json = false;
};

struct Answer {
  chips::Slice slice;
  Prediction prediction;
  double low_ns = 0, high_ns = 0;
  int64_t vmem_peak_bytes = 0;
  int rows = 0;  // of a step of a model; 0: a kernel
  double seconds = 0;
};

constexpr double kMs = 1e-6;  // per nanosecond

constexpr std::string_view kFree = "free=";

// The what-ifs are asked of the band's ends too.
Result<chips::TimeParameters> parameters(const Arguments& args, std::string_view set) {
  TRY(chips::TimeParameterSet found, chips::find_time_parameters(set));
  for (const std::string& w : args.what_if)
    if (!w.starts_with(kFree)) TRY_VOID(chips::set_parameter(found.values, w));
  return found.values;
}

// Operations that --what-if free=... names: by their own name, or by source line.
Result<time::IsFree> free_operations(const Arguments& args, const ir::Module& module) {
  std::set<std::string> names;
  for (const std::string& w : args.what_if)
    if (w.starts_with(kFree)) names.insert(w.substr(kFree.size()));
  if (names.empty()) return time::IsFree();
  const auto line = [](const ir::Op& op) { return fmt::format("{}:{}", op.loc.file, op.loc.line); };
  std::set<std::string> found;
  ir::walk(*module.top, [&](const ir::Op& op) {
    found.insert(op.info().name);
    if (op.loc.known()) found.insert(line(op));
  });
  for (const std::string& n : names) {
    if (found.contains(n)) continue;
    const std::string near = nearest(n, {found.begin(), found.end()});
    return input_error("--what-if free={}: the kernel has no such operation and no such line{}", n,
                       near.empty() ? "" : "; nearest: " + near);
  }
  return time::IsFree([names, line](const ir::Op& op) {
    return names.contains(op.info().name) || names.contains(line(op));
  });
}

Result<chips::Slice> choose_slice(const Arguments& args, int cores) {
  if (args.slice.empty()) return chips::smallest_slice(cores);
  TRY(chips::Slice slice, chips::parse_slice(args.slice));
  if (cores > slice.cores())
    return input_error("{} has {} cores; {} needs {}", args.slice, slice.cores(), args.target,
                       cores);
  return slice;
}

// A program that can be made for any number of cores is made for all of the slice that was named.
Result<int> cores_wanted(const Arguments& args) {
  if (args.cores != 0 || args.slice.empty()) return args.cores;
  TRY(const chips::Slice slice, chips::parse_slice(args.slice));
  return slice.cores();
}

Result<ir::Program> load(const Arguments& args, const Target& target) {
  TRY(const int cores, cores_wanted(args));
  if (is_model_target(target)) return build_model(target, cores);
  if (target.kind != Target::Kind::kKernel) return load_kernel(args.target, args.call, args.cores);
  auto program = load_kernel(args.target, args.call, cores);
  // A lesson for one core runs on one core of the slice.
  if (!program && args.cores == 0) return load_kernel(args.target, args.call, 0);
  return program;
}

Result<Answer> predict(const Arguments& args, Diagnostics& wrong) {
  const auto start = std::chrono::steady_clock::now();
  TRY(const chips::TimeParameters chosen, parameters(args, args.parameters));
  TRY(const chips::TimeParameters best, parameters(args, "optimistic"));
  TRY(const chips::TimeParameters worst, parameters(args, "pessimistic"));
  TRY(const Target target, parse_target(args.target));
  TRY(ir::Program program, load(args, target));
  const int cores = args.cores > 0 ? args.cores : std::max(program.call.cores, 1);
  Answer answer;
  TRY(answer.slice, choose_slice(args, cores));
  TRY(const time::IsFree is_free, free_operations(args, program.module));
  const auto kernel = time::TimedKernel::create(program.module, program.call, is_free);
  if (!kernel) {
    wrong = kernel.error();
    return answer;
  }
  answer.vmem_peak_bytes = emulate::usage(kernel->kernel()).vmem_bytes;
  const time::Placement placement = time::place(answer.slice, cores);
  std::vector<time::Span> spans;
  const bool draws = !args.trace.empty() || !args.html.empty();
  const std::vector<ir::Source> named = ir::sources(program.module);
  std::optional<emulate::SourceValues> given;
  if (!args.scalars.empty()) {
    TRY_VOID(check_names(args.scalars, names_of(program.call, named)));
    TRY(given, read_sources(args.scalars, named, cores));
  }
  // Of several sets of inputs, the slowest.
  for (int seed = 1; seed <= args.seeds; ++seed) {
    TRY(const CallBytes operands,
        operands_of(args.target, args.scalars, program.call, cores, seed));
    const std::vector<std::span<const std::byte>> views(operands.begin(), operands.end());
    if (!named.empty() && args.scalars.empty()) given = emulate::SourceValues::of_seed(seed);
    const auto run = [&](const chips::TimeParameters& p, std::vector<time::Span>* drawn) {
      return kernel->predict(placement, views,
                             {.parameters = p,
                              .max_steps = args.max_steps,
                              .sources = given ? &*given : nullptr,
                              .spans = drawn});
    };
    std::vector<time::Span> drawn;
    auto nominal = run(chosen, draws ? &drawn : nullptr);
    if (!nominal) {
      wrong = nominal.error();
      return answer;
    }
    if (seed > 1 && nominal->ns <= answer.prediction.ns) continue;
    const auto low = run(best, nullptr), high = run(worst, nullptr);
    if (!low || !high) {
      wrong = (!low ? low : high).error();
      return answer;
    }
    answer.low_ns = std::min(low->ns, nominal->ns);
    answer.high_ns = std::max(high->ns, nominal->ns);
    answer.prediction = std::move(*nominal);
    spans = std::move(drawn);
  }
  const std::string title =
      fmt::format("{} on {}, {} parameters", args.target, answer.slice.name(), args.parameters);
  if (!args.trace.empty()) TRY_VOID(write_file(args.trace, time::perfetto_json(spans, title)));
  if (!args.html.empty()) TRY_VOID(write_file(args.html, time::timeline_html(spans, title)));
  for (const ir::CallArg& a : program.call.operands)
    if (a.name == "rows" && is_model_target(target) && a.type.rank() == 2)
      answer.rows = static_cast<int>(a.type.shape()[1]);
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return answer;
}

double floor_ms(const Answer& a, double bytes_per_second) {
  return static_cast<double>(a.prediction.hbm_bytes_most) / bytes_per_second * 1e3;
}

double tokens_per_second(const Answer& a) {
  return a.prediction.ns > 0 ? a.rows * 1e9 / a.prediction.ns : 0;
}

void print_json_answer(const Arguments& args, const Answer& a) {
  const Prediction& p = a.prediction;
  const Parts parts = p.parts.scaled(kMs);
  json per_core = json::array();
  for (const double ns : p.per_core_ns) per_core.push_back(ns * kMs);
  print_json({{"target", args.target},
              {"slice", a.slice.name()},
              {"cores", p.per_core_ns.size()},
              {"params", args.parameters},
              {"what_if", args.what_if},
              {"ms", p.ns * kMs},
              {"band_ms", {a.low_ns * kMs, a.high_ns * kMs}},
              {"floor_ms",
               {{"spec", floor_ms(a, chips::kTpu7x.hbm_bytes_per_second)},
                {"in_kernel", floor_ms(a, chips::kTpu7x.hbm_stream_bytes_per_second)}}},
              {"reference_ms", nullptr},
              {"bytes_per_core", p.hbm_bytes_most},
              {"messages", p.messages},
              {"message_bytes", p.message_bytes},
              {"tokens_per_second", a.rows > 0 ? json(tokens_per_second(a)) : json()},
              {"attribution_ms",
               {{"hbm", parts.hbm},
                {"mxu", parts.mxu},
                {"vector", parts.vector},
                {"scalar", parts.scalar},
                {"exchange", parts.exchange},
                {"peer_wait", parts.peer_wait},
                {"imbalance", parts.imbalance},
                {"fixed", parts.fixed}}},
              {"per_core_ms", per_core},
              {"vmem_peak_bytes", a.vmem_peak_bytes},
              {"seconds", a.seconds}});
}

void print_answer(const Arguments& args, const Answer& a) {
  const Prediction& p = a.prediction;
  const Parts parts = p.parts.scaled(1e-3);
  const double floor = floor_ms(a, chips::kTpu7x.hbm_stream_bytes_per_second);
  fmt::print("{} on {}, {} core{}: {:.4f} ms ({:.4f} to {:.4f}), {} parameters\n", args.target,
             a.slice.name(), p.per_core_ns.size(), p.per_core_ns.size() == 1 ? "" : "s", p.ns * kMs,
             a.low_ns * kMs, a.high_ns * kMs, args.parameters);
  fmt::print(
      "  HBM: {:.3f} MB per core; reading them takes {:.4f} ms at {:.2f} TB/s, {:.4f} at "
      "the specified rate\n",
      static_cast<double>(p.hbm_bytes_most) * 1e-6, floor,
      chips::kTpu7x.hbm_stream_bytes_per_second * 1e-12,
      floor_ms(a, chips::kTpu7x.hbm_bytes_per_second));
  const std::pair<const char*, double> rows[] = {{"waiting for copies", parts.hbm},
                                                 {"matrix units", parts.mxu},
                                                 {"vector units", parts.vector},
                                                 {"scalar unit alone", parts.scalar},
                                                 {"messages on their way", parts.exchange},
                                                 {"waiting for a peer", parts.peer_wait},
                                                 {"done before the last core", parts.imbalance},
                                                 {"launch", parts.fixed}};
  for (const auto& [what, us] : rows)
    fmt::print("  {:<26} {:>12.3f} us {:>5.1f} %\n", what, us, 100 * us / (p.ns * 1e-3));
  if (a.rows > 0) fmt::print("  {:.0f} tokens per second\n", tokens_per_second(a));
}

int run(const Arguments& args) {
  for (const std::string& path : {args.trace, args.html})
    if (const auto writable = path.empty() ? Result<void>() : check_writable(path); !writable)
      return report(writable.error());
  Diagnostics wrong;
  const auto answer = predict(args, wrong);
  if (!answer) return report(answer.error());
  if (!wrong.empty()) return report(wrong);
  if (args.json) {
    print_json_answer(args, *answer);
  } else {
    print_answer(args, *answer);
  }
  return report(answer->prediction.warnings);
}

}  // namespace

void add_time(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("time", "Predict how long a kernel or a step takes on TPU v7");
  const auto args = std::make_shared<Arguments>();
  command
      ->add_option("TARGET", args->target,
                   "kernel:NAME[?key=value&...] of the gallery; model:NAME[?rows=..&context=..] or "
                   "a checkpoint, its step program; or a kernel in a file (.mlir, .mlirbc, JAX's "
                   "StableHLO)")
      ->required();
  add_kernel_options(command, args->call, args->cores);
  command
      ->add_option("--slice", args->slice,
                   "Topology, chips in x, y and z, two cores each; default: the smallest that has "
                   "the cores")
      ->option_text("tpu7x:XxYxZ");
  add_scalars_option(command, "--scalars", args->scalars,
                     "And of operands (some or all): in0, in1, ... or by their names");
  command
      ->add_option("--seeds", args->seeds,
                   "Sets of inputs to time, a gallery kernel's own or a model's row tables; the "
                   "slowest is the answer")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str()
      ->option_text("N");
  command
      ->add_option("--params", args->parameters,
                   "Set of constants: nominal, optimistic, pessimistic, qwen_study, k3_study")
      ->capture_default_str()
      ->option_text("NAME");
  command
      ->add_option(
          "--what-if", args->what_if,
          "Replaces a constant (hbm_core_rate=3690) or scales it (ici_latency_ns=*0.5); or "
          "lets an operation cost nothing (free=math.exp), or a line of the kernel's "
          "source (free=FILE:LINE). May be given several times")
      ->option_text("NAME=VALUE");
  command->add_option("--trace", args->trace, "Write a timeline for ui.perfetto.dev")
      ->option_text("FILE.json");
  command->add_option("--html", args->html, "Write a timeline as a page of its own")
      ->option_text("FILE.html");
  command->add_option("--max-steps", args->max_steps, "Instructions of all cores, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str()
      ->option_text("N");
  command->add_flag("--json", args->json, "Print one JSON object");
  set_examples(command, {"gridless time kernel:15_all_reduce --cores 8",
                         "gridless time 'model:llama_8b?rows=1&context=2000' --slice tpu7x:2x2x1 "
                         "--what-if hbm_core_rate=3690 --json"});
  command->callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace gridless::apps
