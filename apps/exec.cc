// gridless exec: runs a kernel on data.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/commands.h"
#include "apps/common.h"
#include "apps/exec_schedule.h"
#include "apps/exec_tensors.h"
#include "apps/kernel_target.h"
#include "apps/source_tensors.h"
#include "gridless/base/processors.h"
#include "gridless/cpu/run_call.h"
#include "gridless/emulate/emulator.h"
#include "gridless/emulate/scheduler.h"

namespace gridless::apps {
namespace {

struct Arguments {
  std::string target;
  std::string inputs;
  std::string outputs;
  std::string call;
  std::string engine = "emulate";
  std::string schedule;
  std::string scalars;
  int finding = 1;
  std::optional<uint64_t> adversarial;
  int cores = 0;
  bool json = false;
};

void print_answer(const Arguments& args, const std::vector<NamedTensor>& outputs, double seconds,
                  const Diagnostics& diagnostics) {
  if (!args.json) {
    for (const NamedTensor& t : outputs)
      fmt::print("{}: {} {}\n", t.name, t.dtype, ir::shape_str(t.shape));
    return;
  }
  nlohmann::json list = nlohmann::json::object();
  for (const NamedTensor& t : outputs) list[t.name] = {{"shape", t.shape}, {"dtype", t.dtype}};
  nlohmann::json findings = nlohmann::json::array();
  for (const Diagnostic& d : diagnostics) findings.push_back(json_of(d));
  print_json({{"target", args.target},
              {"engine", args.engine},
              {"seconds", seconds},
              {"outputs", list},
              {"findings", findings}});
}

// Named scalar sources: from --scalars, else from the file of inputs, as `check` takes them.
Result<std::optional<emulate::SourceValues>> sources_of(const Arguments& args,
                                                        const ir::Module& module, int cores) {
  const std::vector<ir::Source> sources = ir::sources(module);
  if (args.scalars.empty()) return read_sources(args.inputs, sources, cores);
  TRY_VOID(check_names(args.scalars, names_of({}, sources)));
  return read_sources(args.scalars, sources, cores);
}

int run(const Arguments& args) {
  if (args.engine == "cpu" && (args.adversarial || !args.schedule.empty() || !args.scalars.empty()))
    return report(
        Error{.message = "--adversarial, --schedule and --scalars are for --engine emulate"});
  if (const auto writable = check_writable(args.outputs); !writable)
    return report(writable.error());
  const auto program = load_kernel(args.target, args.call, args.cores);
  if (!program) return report(program.error());
  const int cores = args.cores > 0 ? args.cores : program->call.cores;
  const auto sources = sources_of(args, program->module, cores);
  if (!sources) return report(sources.error());
  const emulate::SourceValues* values = *sources ? &**sources : nullptr;
  const auto operands = read_operands(args.inputs, program->call, cores);
  if (!operands) return report(operands.error());
  const std::vector<std::span<const std::byte>> views(operands->begin(), operands->end());
  if (!args.schedule.empty())
    return rerun_schedule(*program, cores, views,
                          {.target = args.target,
                           .schedules = args.schedule,
                           .number = args.finding,
                           .outputs = args.outputs,
                           .sources = values,
                           .json = args.json});
  const auto start = std::chrono::steady_clock::now();
  emulate::Adversary adversary(args.adversarial.value_or(0));
  const auto result = args.engine == "cpu"
                          ? cpu::run_call(*program, cores, views,
                                          {.threads = std::min(cores, physical_processors())})
                          : emulate::run_call(program->module, program->call, cores, views,
                                              {.scheduler = args.adversarial ? &adversary : nullptr,
                                               .sources = values});
  if (!result) return report(result.error());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // A kernel that did not finish has no results; one that did, but left a semaphore or a copy
  // behind, has results that may show what is wrong with it.
  std::vector<NamedTensor> written;
  if (result->report.finished) {
    auto files = write_results(args.outputs, program->call, cores, result->outputs);
    if (!files) return report(files.error());
    written = std::move(*files);
  }
  print_answer(args, written, seconds, result->report.diagnostics);
  return report(result->report.diagnostics);
}

}  // namespace

void add_exec(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("exec", "Run a kernel on data");
  const auto args = std::make_shared<Arguments>();
  command
      ->add_option(
          "TARGET", args->target,
          "kernel:NAME[?key=value&...] of the gallery, the body of a kernel (.mlirbc, .mlir), or "
          "StableHLO text with one tpu_custom_call")
      ->required();
  command
      ->add_option("--inputs", args->inputs,
                   "Tensors in0, in1, ... in call order, or by the operands' names; with several "
                   "cores a leading core axis")
      ->required()
      ->option_text("IN.safetensors");
  command->add_option("--outputs", args->outputs, "Where out0, out1, ... go")
      ->required()
      ->option_text("OUT.safetensors");
  add_kernel_options(command, args->call, args->cores);
  command->add_option("--engine", args->engine, "What runs it: the emulator, or the fast engine")
      ->check(CLI::IsMember({"emulate", "cpu"}))
      ->capture_default_str();
  command
      ->add_option("--adversarial", args->adversarial,
                   "Emulator: random hostile timing, the same for the same seed: cores far ahead, "
                   "copies late, out of order and counted in part")
      ->option_text("SEED");
  add_scalars_option(command, "--scalars", args->scalars,
                     "Emulator; default: those that IN.safetensors has, else what the kernel "
                     "computes");
  command
      ->add_option("--schedule", args->schedule,
                   "Emulator: run a timing that `check --schedule-out` wrote, and say what it "
                   "shows beside program order")
      ->option_text("FILE");
  command->add_option("--finding", args->finding, "Which of the schedules in the file")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->option_text("N");
  command->add_flag("--json", args->json, "Print one JSON object");
  set_examples(
      command,
      {"gridless exec kernel:05_matmul?k=1024 --inputs in.safetensors --outputs out.safetensors",
       "gridless exec ring.mlir --call call.json --inputs in.safetensors "
       "--outputs out.safetensors --cores 4 --json",
       "gridless exec ring.mlir --inputs in.safetensors --outputs out.safetensors "
       "--schedule race.json --finding 2"});
  command->callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace gridless::apps
