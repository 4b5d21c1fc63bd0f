// gridless compile: a kernel ahead of time for TPU, on a machine that has none.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/commands.h"
#include "apps/common.h"
#include "apps/kernel_target.h"
#include "apps/model_target.h"
#include "apps/target.h"
#include "gridless/chips/slice.h"
#include "gridless/ir/bytecode.h"
#include "gridless/ir/jax_program.h"
#include "gridless/tpu/compile_kernel.h"
#include "gridless/tpu/worker.h"

namespace gridless::apps {
namespace {

struct Arguments {
  std::string target;
  std::string call;
  std::string slice;
  std::string output;
  std::string libtpu;
  int cores = 0;
  double time_limit = 120;
  int64_t memory_limit = 16384;
  bool no_schedule = false;
  bool estimate = false;
  bool json = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The slice that was named, or the smallest with the cores that the program needs.
Result<chips::Slice> choose_slice(const Arguments& args, int cores) {
  if (args.slice.empty()) return chips::smallest_slice(cores);
  TRY(chips::Slice slice, chips::parse_slice(args.slice));
  if (cores > slice.cores()) {
    return input_error("{} has {} cores; {} needs {}", args.slice, slice.cores(), args.target,
                       cores);
  }
  return slice;
}

// `built`: called when the target has been read or recorded, and libtpu's part begins.
using Built = const std::function<void()>&;

Result<tpu::CompiledCall> compile_gallery(const Arguments& args, tpu::Compiler& compiler,
                                          Built built) {
  TRY(const Target target, parse_target(args.target));
  TRY(ir::Program program, build_kernel(target, args.cores));
  built();
  TRY(const chips::Slice slice, choose_slice(args, program.call.cores));
  return tpu::compile_kernel(compiler, std::move(program), slice);
}

// A step program is made for all cores of the slice that was named.
Result<tpu::CompiledCall> compile_model(const Arguments& args, const Target& target,
                                        tpu::Compiler& compiler, Built built) {
  int cores = std::max(args.cores, 1);
  if (args.cores == 0 && !args.slice.empty()) {
    TRY(const chips::Slice named, chips::parse_slice(args.slice));
    cores = named.cores();
  }
  TRY(ir::Program program, build_model(target, cores));
  built();
  TRY(const chips::Slice slice, choose_slice(args, cores));
  return tpu::compile_kernel(compiler, std::move(program), slice);
}

Result<tpu::CompiledCall> compile(const Arguments& args, tpu::Compiler& compiler, Built built) {
  if (args.target.starts_with("kernel:")) return compile_gallery(args, compiler, built);
  TRY(const Target target, parse_target(args.target));
  if (is_model_target(target)) return compile_model(args, target, compiler, built);
  TRY(std::string text, read_text(args.target));
  if (!ir::is_bytecode(text) && ir::is_stablehlo(text)) {
    // As it stands: the rest of the program may do more than call the kernel.
    if (!args.call.empty() || args.cores != 0) {
      return input_error(
          "{} is a whole StableHLO program: it says its own call and cores, so "
          "--call and --cores do not apply",
          args.target);
    }
    TRY(const int cores, ir::program_cores(text));
    TRY(const chips::Slice slice, choose_slice(args, cores));
    built();
    return tpu::compile_program(compiler, std::move(text), args.target, slice);
  }
  TRY(ir::Program program, load_kernel(args.target, args.call));
  if (args.cores != 0) program.call.cores = args.cores;
  built();
  TRY(const chips::Slice slice, choose_slice(args, program.call.cores));
  return tpu::compile_kernel(compiler, std::move(program), slice);
}

nlohmann::json message_list(const Diagnostics& diagnostics) {
  nlohmann::json list = nlohmann::json::array();
  for (const Diagnostic& d : diagnostics) {
    list.push_back(json_of(d));
    list.back()["severity"] = d.severity_name();
  }
  return list;
}

Result<void> write_files(const tpu::CompiledCall& call, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return input_error("cannot make {}: {}", folder.string(), error.message());
  for (const auto& [name, bytes] : tpu::output_files(call, GRIDLESS_VERSION)) {
    const std::filesystem::path path = folder / name;
    std::filesystem::create_directories(path.parent_path(), error);
    TRY_VOID(write_file(path, bytes));
  }
  return {};
}

// The answer in words or as the one JSON object; `files` is empty unless the compilation succeeded.
void print_answer(const Arguments& args, const tpu::CompiledCall& call, double build,
                  double seconds) {
  const auto& compiled = call.result.compiled;
  const std::string executable =
      compiled ? (std::filesystem::path(args.output) / "executable.bin").string() : "";
  if (args.json) {
    const auto* schedule = compiled && compiled->schedule ? &*compiled->schedule : nullptr;
    print_json(
        {{"target", args.target},
         {"slice", call.slice.name()},
         {"cores", call.spec.cores},
         {"ok", compiled.has_value()},
         {"seconds",
          {{"build", build},
           {"emit", call.emit_seconds},
           {"libtpu", compiled ? compiled->seconds : 0.0},
           {"total", seconds}}},
         {"libtpu_version", call.libtpu_version},
         {"code_bytes", compiled ? nlohmann::json(compiled->code_bytes) : nlohmann::json()},
         {"vmem_bytes", schedule ? nlohmann::json(schedule->dump.vmem.bytes) : nlohmann::json()},
         {"cycles_estimated", schedule && schedule->dump.estimated_cycles
                                  ? nlohmann::json(*schedule->dump.estimated_cycles)
                                  : nlohmann::json()},
         {"cycles_static", schedule ? nlohmann::json(schedule->cycles) : nlohmann::json()},
         {"executable", compiled ? nlohmann::json(executable) : nlohmann::json()},
         {"messages", message_list(call.result.diagnostics)}});
  } else if (compiled) {
    fmt::print("{}: {} bytes, {} of code, for {} core{} of {}, in {:.2f} s\n", executable,
               compiled->executable.size(), compiled->code_bytes, call.spec.cores,
               call.spec.cores == 1 ? "" : "s", call.slice.name(), seconds);
  }
}

int run(const Arguments& args) {
  const auto start = std::chrono::steady_clock::now();
  const auto libtpu = tpu::find_libtpu(args.libtpu);
  if (!libtpu) return report(libtpu.error());
  tpu::CompilerOptions options{.libtpu = *libtpu};
  options.time_limit = std::chrono::milliseconds(static_cast<int64_t>(args.time_limit * 1000));
  options.memory_limit_bytes = args.memory_limit << 20;
  options.schedule = !args.no_schedule;
  options.estimate = args.estimate;
  tpu::Compiler compiler(std::move(options));
  double build = 0;
  const auto call = compile(args, compiler, [&] { build = seconds_since(start); });
  if (!call) return report(call.error());
  if (call->result.compiled) {
    if (const auto written = write_files(*call, args.output); !written) {
      return report(written.error());
    }
  }
  print_answer(args, *call, build, seconds_since(start));
  return report(call->result.diagnostics);
}

}  // namespace

void add_compile(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("compile", "Compile a kernel for TPU v7 ahead of time; no TPU is needed");
  const auto args = std::make_shared<Arguments>();
  command
      ->add_option(
          "TARGET", args->target,
          "kernel:NAME?key=value (the gallery), model:NAME?key=value or a checkpoint (its step "
          "program), a Mosaic body (.mlir text or .mlirbc) with --call, or StableHLO text with "
          "one tpu_custom_call")
      ->required();
  command->add_option("-o,--output", args->output, "Folder for the executable and its manifest")
      ->required();
  command->add_option("--call", args->call, "call.json: operands, results and aliases of a body")
      ->check(CLI::ExistingFile);
  CLI::Option* slice = command->add_option(
      "--slice", args->slice, "Topology, chips in x, y and z; two cores each: tpu7x:2x2x1");
  command
      ->add_option("--cores", args->cores,
                   "Cores that run the kernel, on the smallest slice that has them")
      ->check(CLI::Range(1, 4096))
      ->excludes(slice);
  command->add_option("--libtpu", args->libtpu,
                      "libtpu.so or its folder (else GRIDLESS_LIBTPU, the wheel that ./dev "
                      "fetched, or a Python package)");
  command->add_option("--time-limit", args->time_limit, "Seconds the compiler may take")
      ->check(CLI::Range(0.1, 86400.0));
  command->add_option("--memory-limit", args->memory_limit, "MiB of address space it may take")
      ->check(CLI::Range(int64_t{2048}, int64_t{1} << 24));
  CLI::Option* no_schedule =
      command->add_flag("--no-schedule", args->no_schedule,
                        "Leave the schedule out: faster, but no cycles, VMEM and listings");
  command
      ->add_flag("--estimate", args->estimate,
                 "Have libtpu simulate the kernel, copies included; slow where loops are long")
      ->excludes(no_schedule);
  command->add_flag("--json", args->json, "Print one JSON object");
  set_examples(command, {"gridless compile kernel:05_matmul?k=1024 --slice tpu7x:1x1x1 -o matmul",
                         "gridless compile ring.mlir --call call.json --slice tpu7x:2x2x4 -o ring",
                         "gridless compile jax.stablehlo.mlir --json -o out"});
  command->callback([args, &exit_code] { exit_code = run(*args); });

  // Started by tpu::Compiler through /proc/self/exe; in no --help.
  CLI::App* worker = app.add_subcommand("tpu-worker", "The process that holds libtpu")->group("");
  worker->callback([&exit_code] { exit_code = tpu::worker_main(); });
}

}  // namespace gridless::apps
