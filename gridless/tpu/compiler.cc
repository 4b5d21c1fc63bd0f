#include "gridless/tpu/compiler.h"

#include <filesystem>
#include <numeric>
#include <utility>

#include "gridless/tpu/libtpu_messages.h"
#include "gridless/tpu/schedule.h"
#include "gridless/tpu/worker_protocol.h"

namespace gridless::tpu {
namespace {

// Loading and initialising libtpu takes a fraction of a second; a cold disk may take longer.
constexpr std::chrono::seconds kStartLimit{60};
// Where dumps go within the worker's folder. Part of the executable's bytes: do not vary it.
constexpr const char* kDumps = "schedule";

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
  if (options_.schedule) {
    TRY(ScratchFolder scratch, ScratchFolder::make());
    scratch_.emplace(std::move(scratch));
    folder = scratch_->path().string();
    const std::vector<std::string> dumps = schedule_flags(kDumps);
    flags.insert(flags.end(), dumps.begin(), dumps.end());
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

Result<std::variant<Answer, WorkerProcess::Death>> Compiler::attempt(const CompileJob& job) {
  TRY_VOID(ensure_worker());
  std::vector<int> devices(static_cast<size_t>(job.cores));
  std::iota(devices.begin(), devices.end(), 0);
  auto answer = worker_->exchange(
      encode_frame({{"slice", job.slice.name()}, {"device_ids", devices}, {"flags", job.flags}},
                   job.stablehlo),
      options_.time_limit);
  if (auto* death = std::get_if<WorkerProcess::Death>(&answer)) {
    worker_.reset();
    return std::move(*death);
  }
  TRY(Answer read, decode_answer(std::move(std::get<Frame>(answer))));
  if (scratch_) {
    const std::filesystem::path dumps = scratch_->path() / kDumps;
    if (read.compiled) read.compiled->schedule = read_schedule(dumps, job.name);
    std::error_code ignored;
    std::filesystem::remove_all(dumps, ignored);  // so that the next job's files are only its own
    std::filesystem::create_directory(dumps, ignored);
  }
  return read;
}

Result<CompileResult> Compiler::compile(const CompileJob& job) {
  CompileResult out{.name = job.name};
  if (job.cores < 1 || job.cores > job.slice.cores()) {
    return input_error("'{}' needs {} cores; {} has {}", job.name, job.cores, job.slice.name(),
                       job.slice.cores());
  }
  TRY(auto outcome, attempt(job));
  const auto* death = std::get_if<WorkerProcess::Death>(&outcome);
  if (death != nullptr && !death->timed_out && options_.schedule) {
    options_.schedule = false;
    scratch_.reset();
    TRY(outcome, attempt(job));
    death = std::get_if<WorkerProcess::Death>(&outcome);
    if (death != nullptr) options_.schedule = true;  // the dumps were not the cause
  }
  if (death != nullptr) {
    out.diagnostics.push_back(crash(job, *death, options_));
    return out;
  }
  Answer& read = std::get<Answer>(outcome);
  if (read.compiled) {
    platform_version_ = read.platform_version;
    out.compiled = std::move(*read.compiled);
  } else if (read.compiled.error().kind == Error::Kind::kInput) {
    out.diagnostics.push_back(diagnose(read.compiled.error().message, job.body_file));
  } else {
    return std::unexpected(read.compiled.error().in(job.name));
  }
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
