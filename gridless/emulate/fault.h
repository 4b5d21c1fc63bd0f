// Fault: how an op function stops the core it runs on. Thrown and caught inside this room only: the
// public functions (eval.h, emulator.h) hand the Diagnostic on as a value.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

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

// A run in which nobody goes on: `waiting` has a line for each of its `cores` that waits, the first
// of them at `where`.
inline Diagnostic deadlock(std::vector<std::string> waiting, size_t cores, const SourceLoc& where) {
  return {.kind = "deadlock",
          .message = fmt::format("deadlock: {} of {} cores wait for ever", waiting.size(), cores),
          .where = where,
          .notes = std::move(waiting),
          .hint = "who should have signalled, and was its device id and count right?"};
}

}  // namespace gridless::emulate
