// Ahead-of-time compilation for TPU on a machine without one: jobs go to a worker process that
// holds libtpu. What libtpu refuses is the kernel's fault (Diagnostics); that it cannot be run at
// all is this machine's (Error).
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/tpu/compiled.h"
#include "gridless/tpu/libtpu_path.h"
#include "gridless/tpu/scratch_folder.h"
#include "gridless/tpu/worker_process.h"
#include "gridless/tpu/worker_protocol.h"

namespace gridless::tpu {

struct CompileJob {
  std::string name;       // for messages
  std::string stablehlo;  // see stablehlo_text()
  std::string body_file;  // named in diagnostics for places in the body text itself
  chips::Slice slice;
  int cores = 1;                             // on the devices of Slice::core_order()
  std::map<std::string, std::string> flags;  // libtpu flags for this job only
};

struct CompileResult {
  std::string name;
  std::optional<Compiled> compiled;  // none: the diagnostics say why
  Diagnostics diagnostics;
};

struct CompilerOptions {
  Libtpu libtpu;
  // Wall-clock limit of one compilation. The 8B-shaped step takes seconds; what needs minutes is
  // better written with loops.
  std::chrono::milliseconds time_limit = std::chrono::seconds(120);
  // Address space of the worker. libtpu maps 1.7 GB before it compiles anything.
  int64_t memory_limit_bytes = int64_t{16} << 30;
  // LIBTPU_INIT_ARGS of the worker: flags that hold for the whole process, such as dumps.
  std::vector<std::string> libtpu_flags;
  // Have libtpu dump the kernel's schedule and read it into Compiled::schedule. A libtpu that
  // crashes over its dumps is tried again without.
  bool schedule = false;
  // With `schedule`: also what libtpu's own simulation says, copies included. That is a second
  // compilation, which follows loops round by round (minutes for the 8B step) and crashes on some
  // kernels; then there is a warning instead.
  bool estimate = false;
  // How to start a worker: any program that calls worker_main() for this command line.
  std::vector<std::string> worker_command = {"/proc/self/exe", "tpu-worker"};
};

// Keeps one worker between calls, so that loading libtpu (0.3 s) is paid once. Not thread-safe.
class Compiler {
 public:
  explicit Compiler(CompilerOptions options) : options_(std::move(options)) {}

  // One result per job, in order. A job that crashes libtpu, or exceeds a limit, gets a diagnostic
  // that names the signal and libtpu's last words; the jobs after it run in a fresh worker.
  Result<std::vector<CompileResult>> compile(const std::vector<CompileJob>& jobs);
  Result<CompileResult> compile(const CompileJob& job);

  const CompilerOptions& options() const { return options_; }
  // libtpu's own description, e.g. "TFRT TPU7x\nBuilt on ..."; "" before the first success.
  const std::string& platform_version() const { return platform_version_; }
  int workers_started() const { return workers_started_; }

 private:
  Result<void> ensure_worker();
  Result<std::variant<Answer, WorkerProcess::Death>> attempt(const CompileJob& job);
  // Again without dumps when the compiler crashed with them.
  Result<std::variant<Answer, WorkerProcess::Death>> attempt_with_less(const CompileJob& job);
  // Reads what the worker dumped for the job into `result`, and clears the folder.
  void take_schedule(CompileResult& result);
  // Compiles the job once more in a worker that simulates it: together with source places in the
  // dumps the simulation crashes.
  Result<void> take_estimate(const CompileJob& job, CompileResult& result);

  CompilerOptions options_;
  std::optional<ScratchFolder> scratch_;  // the worker's working directory; outlives it
  std::optional<WorkerProcess> worker_;
  bool simulates_ = false;  // the one that take_estimate() makes
  std::string platform_version_;
  int workers_started_ = 0;
};

}  // namespace gridless::tpu
