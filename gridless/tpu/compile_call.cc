#include "gridless/tpu/compile_call.h"

#include <charconv>
#include <chrono>
#include <utility>

#include "gridless/tpu/body_signature.h"
#include "gridless/tpu/stablehlo.h"

namespace gridless::tpu {
namespace {

Result<void> run(Compiler& compiler, CompiledCall& call, std::string body_file) {
  TRY(call.result, compiler.compile(CompileJob{.name = call.spec.kernel_name,
                                               .stablehlo = call.stablehlo,
                                               .body_file = std::move(body_file),
                                               .slice = call.slice,
                                               .cores = call.spec.cores}));
  call.libtpu_version = compiler.options().libtpu.wheel_version;
  call.libtpu_build = compiler.platform_version();
  return {};
}

}  // namespace

Result<CompiledCall> compile_call(Compiler& compiler, CallSpec spec, std::string body,
                                  std::string body_file, const chips::Slice& slice) {
  const auto start = std::chrono::steady_clock::now();
  CompiledCall call{.spec = std::move(spec), .slice = slice, .body = std::move(body)};
  call.result.name = call.spec.kernel_name;
  call.result.diagnostics = match_signature(call.body, body_file, call.spec);
  if (has_errors(call.result.diagnostics)) return call;
  TRY(call.stablehlo, stablehlo_text(call.spec, call.body));
  const std::chrono::duration<double> emitted = std::chrono::steady_clock::now() - start;
  call.emit_seconds = emitted.count();
  TRY_VOID(run(compiler, call, std::move(body_file)));
  return call;
}

Result<int> program_cores(std::string_view stablehlo) {
  constexpr std::string_view kAttribute = "mhlo.num_partitions = ";
  const size_t at = stablehlo.find(kAttribute);
  if (at == std::string_view::npos) return 1;
  const std::string_view digits = stablehlo.substr(at + kAttribute.size());
  int cores = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), cores);
  if (error != std::errc() || cores < 1) {
    return input_error("the program's mhlo.num_partitions is not a positive number");
  }
  return cores;
}

Result<CompiledCall> compile_program(Compiler& compiler, std::string stablehlo, std::string file,
                                     const chips::Slice& slice) {
  CompiledCall call{.slice = slice, .stablehlo = std::move(stablehlo)};
  TRY(call.spec.cores, program_cores(call.stablehlo));
  call.spec.kernel_name = file;
  TRY_VOID(run(compiler, call, std::move(file)));
  return call;
}

}  // namespace gridless::tpu
