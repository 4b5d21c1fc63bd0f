#include "gridless/tpu/compile_call.h"

#include <chrono>
#include <utility>

#include "gridless/ir/jax_program.h"
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
  if (const auto& compiled = call.result.compiled;
      compiled && compiled->operand_layouts.size() == call.spec.operands.size()) {
    for (size_t i = 0; i < call.spec.operands.size(); ++i)
      call.spec.operands[i].device_layout = compiled->operand_layouts[i];
  }
  return call;
}

Result<CompiledCall> compile_program(Compiler& compiler, std::string stablehlo, std::string file,
                                     const chips::Slice& slice) {
  CompiledCall call{.slice = slice, .stablehlo = std::move(stablehlo)};
  TRY(call.spec.cores, ir::program_cores(call.stablehlo));
  call.spec.kernel_name = file;
  TRY_VOID(run(compiler, call, std::move(file)));
  return call;
}

}  // namespace gridless::tpu
