// The one door to the TPU back end: a kernel call in, an executable with its manifest out.
// Everything that ends on a TPU (a gallery kernel, a model's step, a body from a file) passes
// through here.
#pragma once

#include <map>
#include <string>

#include "gridless/base/diagnostic.h"
#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/tpu/call_spec.h"
#include "gridless/tpu/compiler.h"

namespace gridless::tpu {

struct CompiledCall {
  CallSpec spec;  // as compiled: spaces that only the body names are filled in
  chips::Slice slice;
  std::string body;       // empty for a program that came as StableHLO
  std::string stablehlo;  // what libtpu was given
  CompileResult result;
  double emit_seconds = 0;  // from body and spec to StableHLO text
  // Who compiled it, for the manifest.
  std::string libtpu_version;  // of the wheel; "" when unknown
  std::string libtpu_build;    // its own description
};

// `body` is Mosaic MLIR text (stable_mosaic or plain dialect form), `body_file` its name in
// messages. The call's cores run on the devices of Slice::core_order(). A call that does not fit
// its body, or a program that libtpu refuses, is a result with diagnostics and without `compiled`.
Result<CompiledCall> compile_call(Compiler& compiler, CallSpec spec, std::string body,
                                  std::string body_file, const chips::Slice& slice);

// A whole StableHLO program in text, as JAX prints it, compiled as it is. The number of cores is
// its mhlo.num_partitions. The spec in the answer has the program's name and cores and nothing
// else.
Result<CompiledCall> compile_program(Compiler& compiler, std::string stablehlo, std::string file,
                                     const chips::Slice& slice);

// The files of one compilation by name: executable.bin, manifest.json, report.txt,
// program.stablehlo.mlir, body.mlir and, if it was asked for, schedule/*.txt. They depend on the
// inputs and on libtpu's version only: no times, no paths. Needs result.compiled.
// docs/compile_output.md describes them.
std::map<std::string, std::string> output_files(const CompiledCall& call,
                                                std::string_view gridless_version);

}  // namespace gridless::tpu
