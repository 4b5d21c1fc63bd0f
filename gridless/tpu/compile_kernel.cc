#include "gridless/tpu/compile_kernel.h"

#include <utility>

#include "gridless/ir/text.h"
#include "gridless/tpu/in_place.h"

namespace gridless::tpu {

KernelSource kernel_source(ir::Program program) {
  KernelSource out{.spec = call_spec(program.call)};
  write_through_operands(program, out.spec);
  out.body = ir::print(program.module, {.locations = true});
  return out;
}

Result<CompiledCall> compile_kernel(Compiler& compiler, ir::Program program,
                                    const chips::Slice& slice) {
  const std::string file = program.call.name + ".mlir";
  KernelSource source = kernel_source(std::move(program));
  return compile_call(compiler, std::move(source.spec), std::move(source.body), file, slice);
}

}  // namespace gridless::tpu
