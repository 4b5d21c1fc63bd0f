// gridless check: proves a kernel free of races, hangs and the like under every timing, or says
// what is wrong with it.
#include "gridless/emulate/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/check_exhaustive.h"
#include "apps/commands.h"
#include "apps/common.h"
#include "apps/kernel_operands.h"
#include "apps/kernel_target.h"
#include "apps/model_target.h"
#include "apps/source_tensors.h"
#include "apps/target.h"
#include "gridless/emulate/check/inputs.h"

namespace gridless::apps {
namespace {

using emulate::CheckReport;
using nlohmann::json;

struct Arguments {
  std::string target;
  std::string call;
  std::string inputs;
  std::string schedule_out;
  std::string wait_for_out;
  int cores = 0;
  int seeds = 0;  // 0: one, or every pattern of the named scalar sources
  int64_t max_steps = emulate::CheckOptions().max_steps;
  int64_t max_states = emulate::ExploreOptions().max_states;
  bool scalars_only = false;
  bool exhaustive = false;
  bool json = false;
};

// The certificate's report, and with --exhaustive the explorer's on the same data.
struct Answer {
  CheckReport report;
  std::optional<emulate::ExploreVerdict> explored;

  bool clean() const { return report.clean() && (!explored || explored->findings.empty()); }
  Diagnostics diagnostics() const {
    Diagnostics all = report.diagnostics();
    if (explored) std::ranges::move(diagnostics_of(*explored), std::back_inserter(all));
    return all;
  }
};

json to_json(const emulate::Finding& f) {
  json out = json_of(f.diagnostic);
  out["severity"] = f.diagnostic.severity_name();
  out["cores"] = f.cores;
  return out;
}

// The timings that show the findings, errors first.
emulate::ScheduleFile schedule_file(const Arguments& args, const Answer& answer) {
  const CheckReport& report = answer.report;
  emulate::ScheduleFile file{.target = args.target, .cores = report.cores, .schedules = {}};
  for (const auto severity : {Diagnostic::Severity::kError, Diagnostic::Severity::kWarning})
    for (const emulate::Finding& f : report.findings)
      if (f.schedule && f.diagnostic.severity == severity) file.schedules.push_back(*f.schedule);
  if (answer.explored)
    std::ranges::move(schedules_of(*answer.explored), std::back_inserter(file.schedules));
  return file;
}

void print_report(const Arguments& args, const Answer& answer) {
  const CheckReport& report = answer.report;
  if (args.json) {
    json findings = json::array();
    for (const emulate::Finding& f : report.findings) findings.push_back(to_json(f));
    json out = {{"target", args.target},
                {"verdict", answer.clean() ? "clean" : "findings"},
                {"certificate", report.certificate},
                {"findings", findings},
                {"notes", report.notes},
                {"events", report.events},
                {"cores", report.cores},
                {"seconds", report.seconds},
                {"vmem_peak_bytes", report.vmem_peak_bytes},
                {"smem_peak_bytes", report.smem_peak_bytes},
                {"semaphores", report.semaphores}};
    if (answer.explored) out["exhaustive"] = json_of(*answer.explored);
    print_json(out);
    return;
  }
  const int errors = static_cast<int>(std::ranges::count_if(report.findings, [](const auto& f) {
    return f.diagnostic.severity == Diagnostic::Severity::kError;
  }));
  fmt::print("{}: {}, {}\n", args.target,
             report.clean() ? "clean" : fmt::format("{} error{}", errors, errors > 1 ? "s" : ""),
             report.certificate ? "proved for every timing of this data" : "no proof");
  fmt::print("  {} core{}, {} events, {:.1f} ms; VMEM {} bytes, SMEM {} bytes, {} semaphores\n",
             report.cores, report.cores > 1 ? "s" : "", report.events, report.seconds * 1e3,
             report.vmem_peak_bytes, report.smem_peak_bytes, report.semaphores);
  if (answer.explored) fmt::print("  {}\n", summary(*answer.explored));
  for (const std::string& n : report.notes) fmt::print("  {}\n", n);
}

// Writes the drawing, if there is something to draw; a note says which.
Result<void> write_wait_for(const Arguments& args, CheckReport& report) {
  if (report.wait_for.empty()) {
    report.notes.push_back(args.wait_for_out + " not written: no core waits for ever");
    return {};
  }
  const std::string title =
      fmt::format("{}: deadlock on {} cores", args.target, report.wait_for.cores);
  TRY_VOID(write_file(args.wait_for_out, emulate::to_svg(report.wait_for, title)));
  report.notes.push_back("wait-for graph: " + args.wait_for_out);
  return {};
}

Result<ir::Program> load(const Arguments& args) {
  TRY(const Target target, parse_target(args.target));
  if (is_model_target(target)) return build_model(target, args.cores);
  return load_kernel(args.target, args.call, args.cores);
}

// One set of inputs.
Result<Answer> check_once(const Arguments& args, const ir::Program& program, int cores,
                          std::span<const std::span<const std::byte>> inputs,
                          const emulate::CheckOptions& options) {
  Answer answer;
  TRY(answer.report, emulate::check(program.module, program.call, cores, inputs, options));
  if (!args.exhaustive) return answer;
  TRY(const emulate::CheckInputs all,
      emulate::complete_inputs(program.call, cores, inputs, /*make_up=*/true));
  TRY(answer.explored, emulate::explore(program.module, program.call, cores, all.operands,
                                        {.max_states = args.max_states}));
  return answer;
}

// With several seeds, the first run that is not clean is the answer, else the first without proof.
Result<Answer> check_seeds(const Arguments& args, const ir::Program& program, int cores,
                           bool scalars_only) {
  const std::vector<ir::Source> sources = ir::sources(program.module);
  std::optional<emulate::SourceValues> given;
  if (!args.inputs.empty()) {
    TRY_VOID(check_names(args.inputs, names_of(program.call, sources)));
    TRY(given, read_sources(args.inputs, sources, cores));
  }
  const bool patterns = scalars_only && !sources.empty() && !given;
  const int seeds = args.seeds > 0 ? args.seeds : patterns ? emulate::SourceValues::kPatterns : 1;
  std::optional<Answer> answer;
  double seconds = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    TRY(const CallBytes operands, operands_of(args.target, args.inputs, program.call, cores, seed));
    const std::vector<std::span<const std::byte>> views(operands.begin(), operands.end());
    if (patterns) given = emulate::SourceValues::of_seed(seed);
    TRY(Answer checked, check_once(args, program, cores, views,
                                   {.max_steps = args.max_steps,
                                    .scalars_only = scalars_only,
                                    .sources = given ? &*given : nullptr}));
    seconds += checked.report.seconds;
    const bool clean = checked.clean();
    if (!answer || answer->report.certificate || !clean) answer = std::move(checked);
    if (!clean) break;
  }
  answer->report.seconds = seconds;
  return std::move(*answer);
}

int run(const Arguments& args) {
  for (const std::string& path : {args.schedule_out, args.wait_for_out})
    if (const auto writable = path.empty() ? Result<void>() : check_writable(path); !writable)
      return report(writable.error());
  const auto program = load(args);
  if (!program) return report(program.error());
  const int cores = args.cores > 0 ? args.cores : program->call.cores;
  const bool scalars_only = args.scalars_only || too_large_for_values(program->call, cores);
  if (scalars_only && args.exhaustive)
    return report(Error{.message = "--exhaustive runs on values: it is for small kernels"});
  auto answer = check_seeds(args, *program, cores, scalars_only);
  if (!answer) return report(answer.error());
  if (!args.schedule_out.empty()) {
    const auto written =
        write_file(args.schedule_out, emulate::to_json(schedule_file(args, *answer)));
    if (!written) return report(written.error());
  }
  if (!args.wait_for_out.empty()) {
    const auto noted = write_wait_for(args, answer->report);
    if (!noted) return report(noted.error());
  }
  print_report(args, *answer);
  return report(answer->diagnostics());
}

}  // namespace

void add_check(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("check", "Prove a kernel right under every timing, or find what is wrong");
  const auto args = std::make_shared<Arguments>();
  command
      ->add_option(
          "TARGET", args->target,
          "kernel:NAME[?key=value&...] of the gallery; model:NAME[?rows=..&context=..&layers=..] "
          "or a "
          "checkpoint, its step program; or a kernel in a file (.mlir, .mlirbc, JAX's StableHLO)")
      ->required();
  add_kernel_options(command, args->call, args->cores);
  add_scalars_option(command, "--scalars,--inputs", args->inputs,
                     "And of operands (some or all): in0, in1, ... or by their names; default: the "
                     "data.safetensors beside the body. Without values, tables are zeros");
  command
      ->add_option(
          "--seeds", args->seeds,
          "Sets of inputs to check, one after another: a gallery kernel's own, a model's row "
          "tables, and in runs of scalars only the patterns of named scalar sources. Default: 1, "
          "or all 8 patterns")
      ->check(CLI::Range(1, 10000))
      ->option_text("N");
  command->add_option("--max-steps", args->max_steps, "Instructions of all cores, at most")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str()
      ->option_text("N");
  command
      ->add_option("--schedule-out", args->schedule_out,
                   "Write the timings that show the findings, as JSON, for `exec --schedule`")
      ->option_text("FILE");
  command
      ->add_option("--wait-for", args->wait_for_out,
                   "Deadlock: draw which core waits for which (the file is left alone if there is "
                   "none)")
      ->option_text("FILE.svg");
  command->add_flag("--scalars-only", args->scalars_only,
                    "Run without what vectors hold: programs of any size. Taken by itself where "
                    "operands and results are larger than 256 MiB");
  command->add_flag("--exhaustive", args->exhaustive,
                    "Small kernels: also run every timing, one by one, as a second opinion");
  command
      ->add_option("--max-states", args->max_states,
                   "With --exhaustive: states visited before it gives up without a verdict")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str()
      ->option_text("N");
  command->add_flag("--json", args->json, "Print one JSON object");
  set_examples(command, {"gridless check kernel:15_all_reduce --cores 8",
                         "gridless check 'model:llama_8b?rows=4&context=8000' --cores 8 --json"});
  command->callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace gridless::apps
