// visit(consumer, op): calls consumer.<OpName>(op), e.g. consumer.ArithAddf(op). The switch is made
// from the op table, so a consumer without a function for some op does not compile.
#pragma once

#include "gridless/base/check.h"
#include "gridless/ir/module.h"

namespace gridless::ir {

template <typename Consumer, typename O>
decltype(auto) visit(Consumer& consumer, O& op) {
  switch (op.code) {
#define GRIDLESS_CASE(id, ...) \
  case OpCode::k##id:          \
    return consumer.id(op);
    GRIDLESS_OPS(GRIDLESS_CASE)
#undef GRIDLESS_CASE
  }
  GRIDLESS_CHECK(false, "op code {}", static_cast<int>(op.code));
  __builtin_unreachable();
}

}  // namespace gridless::ir
