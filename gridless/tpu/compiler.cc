#include "gridless/tpu/compiler.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "gridless/bundles/analysis.h"
#include "gridless/tpu/libtpu_messages.h"
#include "gridless/tpu/worker_protocol.h"

namespace gridless::tpu {

using Outcome = std::variant<Answer, WorkerProcess::Death>;

namespace {

// Loading and initialising libtpu takes a fraction of a second; a cold disk may take longer.
constexpr std::chrono::seconds kStartLimit{60};
// Where dumps go within the worker's folder. Part of the executable's bytes: do not vary it.
constexpr const char* kDumps = "schedule";

// The flags that make libtpu write the kernel's listings into `folder`, with source places, and
// only these: all passes would cost five to ten times the compilation.
std::vector<std::string> dump_flags(std::string_view folder) {
  return {fmt::format("--xla_jf_dump_to={}", folder),
          "--xla_jf_dump_llo_text=true",
          "--xla_jf_dump_hlo_text=false",
          "--xla_jf_dump_llo_html=false",
          "--xla_jf_dump_llo_static_gaps=false",
          "--xla_jf_dump_llo_pass_label_regex=.*(final_bundles|packed-bundles-post-ra).*|"
          "critical-path",
          "--xla_mosaic_enable_llo_source_annotations=true"};
}

Result<Schedule> read_schedule(const std::filesystem::path& folder, std::string_view kernel) {
  Schedule out;
  TRY(out.dump, bundles::collect_dump(folder, kernel));
  TRY(bundles::Listing listing, bundles::parse_listing(out.dump.schedule));
  out.cycles = std::ssize(listing.bundles);
  out.bundles = std::ranges::count_if(listing.bundles, [](const auto& b) { return !b.empty; });
  return out;
}

// libtpu's last words end with a stack trace; the line that says what failed comes before it, where
// absl's logger puts its F0000 or E0000 prefix.
Diagnostic crash(const CompileJob& job, const WorkerProcess::Death& death,
                 const CompilerOptions& options) {
  Diagnostic out;
  out.kind = death.timed_out ? "compiler_timeout" : "compiler_crash";
  out.message = fmt::format("'{}': the TPU compiler {}", job.name, death.what);
  for (const std::string& line : death.last_lines) {
    if (!out.where.known()) out.where = find_location(line, job.body_file);
    out.notes.push_back("libtpu: " + line);
  }
  out.hint =
      death.timed_out
          ? "unrolled code costs about 4.5 ms per 256x256 tile: use loops, or allow more time"
          : fmt::format(
                "libtpu aborts on some programs it should refuse; its last words are "
                "above. Memory limit of the compiler: {} MiB",
                options.memory_limit_bytes >> 20);
  return out;
}

}  // namespace

Result<void> Compiler::ensure_worker() {
  if (worker_) return {};
  std::vector<std::string> flags = options_.libtpu_flags;
  std::string folder;
  if (options_.schedule || simulates_) {
    TRY(ScratchFolder scratch, ScratchFolder::make());
    scratch_.emplace(std::move(scratch));
    folder = scratch_->path().string();
    if (simulates_) {
      flags.push_back(fmt::format("--xla_jf_dump_static_llo_profile_to={}", kDumps));
    } else {
      const std::vector<std::string> dumps = dump_flags(kDumps);
      flags.insert(flags.end(), dumps.begin(), dumps.end());
    }
  }
  TRY(WorkerProcess process, WorkerProcess::start(options_.worker_command));
  ++workers_started_;
  const std::filesystem::path library = std::filesystem::absolute(options_.libtpu.path);
  auto answer = process.exchange(encode_frame({{"libtpu", library.string()},
                                               {"memory_limit_bytes", options_.memory_limit_bytes},
                                               {"libtpu_flags", flags},
                                               {"folder", folder}},
                                              ""),
                                 kStartLimit);
  if (const auto* death = std::get_if<WorkerProcess::Death>(&answer)) {
    std::string words;
    for (const std::string& line : death->last_lines) words += "\n  " + line;
    return machine_error("the TPU compiler {} {} while it was being loaded{}",
                         options_.libtpu.path.string(), death->what, words);
  }
  const Frame& hello = std::get<Frame>(answer);
  if (!hello.head.value("ok", false)) {
    return machine_error("{}", hello.head.value("error", "the compile worker gave no reason"));
  }
  worker_.emplace(std::move(process));
  return {};
}

Result<Outcome> Compiler::attempt(const CompileJob& job) {
  TRY_VOID(ensure_worker());
  auto answer = worker_->exchange(encode_frame({{"slice", job.slice.name()},
                                                {"device_ids", job.slice.core_order(job.cores)},
                                                {"flags", job.flags}},
                                               job.stablehlo),
                                  options_.time_limit);
  if (auto* death = std::get_if<WorkerProcess::Death>(&answer)) {
    worker_.reset();
    return std::move(*death);
  }
  return decode_answer(std::move(std::get<Frame>(answer)));
}

Result<Outcome> Compiler::attempt_with_less(const CompileJob& job) {
  const auto crashed = [](const Result<Outcome>& outcome) {
    const auto* death = outcome ? std::get_if<WorkerProcess::Death>(&*outcome) : nullptr;
    return death != nullptr && !death->timed_out;
  };
  Result<Outcome> first = attempt(job);
  if (!crashed(first) || !options_.schedule) return first;
  options_.schedule = false;
  scratch_.reset();
  Result<Outcome> second = attempt(job);
  if (crashed(second)) options_.schedule = true;  // the dumps were not the cause
  return second;
}

Result<void> Compiler::take_estimate(const CompileJob& job, CompileResult& result) {
  if (!options_.estimate || !result.compiled || !result.compiled->schedule) return {};
  Compiler simulator(options_);
  simulator.options_.schedule = false;
  simulator.simulates_ = true;
  const Result<Outcome> outcome = simulator.attempt(job);
  if (!outcome) return std::unexpected(outcome.error());
  bundles::Dump& dump = result.compiled->schedule->dump;
  const std::filesystem::path folder = simulator.scratch_->path() / kDumps;
  dump.estimated_cycles = bundles::read_estimate(folder, dump.kernel);
  if (dump.estimated_cycles) return {};
  const auto* death = std::get_if<WorkerProcess::Death>(&*outcome);
  result.diagnostics.push_back(
      {.severity = Diagnostic::Severity::kWarning,
       .kind = "no_estimate",
       .message = fmt::format("'{}': no estimate: libtpu's simulation {}", job.name,
                              death ? death->what : "wrote none")});
  return {};
}

void Compiler::take_schedule(CompileResult& result) {
  if (!scratch_) return;
  const std::filesystem::path dumps = scratch_->path() / kDumps;
  if (result.compiled) {
    if (auto schedule = read_schedule(dumps, result.name)) {
      result.compiled->schedule = std::move(*schedule);
    } else {
      result.diagnostics.push_back(
          {.severity = Diagnostic::Severity::kWarning,
           .kind = "no_schedule",
           .message = "libtpu's schedule could not be read: " + schedule.error().message,
           .hint = "the executable is complete; --no-schedule leaves the schedule out"});
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(dumps, ignored);  // so that the next job's files are only its own
  std::filesystem::create_directory(dumps, ignored);
}

Result<CompileResult> Compiler::compile(const CompileJob& job) {
  CompileResult out{.name = job.name};
  if (job.cores < 1 || job.cores > job.slice.cores()) {
    return input_error("'{}' needs {} cores; {} has {}", job.name, job.cores, job.slice.name(),
                       job.slice.cores());
  }
  Result<Outcome> outcome = attempt_with_less(job);
  if (!outcome) return std::unexpected(outcome.error());
  const auto* death = std::get_if<WorkerProcess::Death>(&*outcome);
  if (death != nullptr) {
    out.diagnostics.push_back(crash(job, *death, options_));
    return out;
  }
  Answer& read = std::get<Answer>(*outcome);
  if (read.compiled) {
    platform_version_ = read.platform_version;
    out.compiled = std::move(*read.compiled);
  } else if (read.compiled.error().kind == Error::Kind::kInput) {
    out.diagnostics.push_back(diagnose(read.compiled.error().message, job.body_file));
  } else {
    return std::unexpected(read.compiled.error().in(job.name));
  }
  take_schedule(out);
  TRY_VOID(take_estimate(job, out));
  return out;
}

Result<std::vector<CompileResult>> Compiler::compile(const std::vector<CompileJob>& jobs) {
  std::vector<CompileResult> results;
  for (const CompileJob& job : jobs) {
    TRY(CompileResult result, compile(job));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace gridless::tpu
