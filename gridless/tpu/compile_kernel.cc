#include "gridless/tpu/compile_kernel.h"

#include <utility>

#include "gridless/ir/text.h"
#include "gridless/tpu/in_place.h"

namespace gridless::tpu {

Result<CompiledCall> compile_kernel(Compiler& compiler, ir::Program program,
                                    const chips::Slice& slice) {
  CallSpec spec = call_spec(program.call);
  write_through_operands(program, spec);
  return compile_call(compiler, std::move(spec), ir::print(program.module, {.locations = true}),
                      program.call.name + ".mlir", slice);
}

}  // namespace gridless::tpu
