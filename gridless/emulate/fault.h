// Fault: how an op function stops the core it runs on. Thrown and caught inside this room only: the
// public functions (eval.h, emulator.h) hand the Diagnostic on as a value.
#pragma once

#include <string>
#include <utility>

#include "gridless/base/diagnostic.h"
#include "gridless/ir/module.h"

namespace gridless::emulate {

struct Fault {
  Diagnostic diagnostic;
};

[[noreturn]] inline void fault(const ir::Op& op, std::string kind, std::string message,
                               std::string hint = "") {
  throw Fault{Diagnostic{.kind = std::move(kind),
                         .message = std::move(message),
                         .where = op.loc,
                         .notes = {},
                         .hint = std::move(hint)}};
}

}  // namespace gridless::emulate
