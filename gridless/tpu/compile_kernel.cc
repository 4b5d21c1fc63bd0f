#include "gridless/tpu/compile_kernel.h"

#include "gridless/ir/text.h"

namespace gridless::tpu {

Result<CompiledCall> compile_kernel(Compiler& compiler, const ir::Program& program,
                                    const chips::Slice& slice) {
  return compile_call(compiler, call_spec(program.call),
                      ir::print(program.module, {.locations = true}), program.call.name + ".mlir",
                      slice);
}

}  // namespace gridless::tpu
