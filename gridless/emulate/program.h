// Program: a function of the IR flattened to a list of instructions with jumps, and its SSA values
// numbered into the slots of a frame. A core's whole control state is then one program counter and
// one frame: a core that blocks at a wait just keeps its counter, and a scheduler may copy or drop
// a core at any instruction. No op is looked up by pointer while a core runs.
#pragma once

#include <expected>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/emulate/value.h"
#include "gridless/ir/module.h"

namespace gridless::emulate {

struct Instr {
  enum class Kind : uint8_t {
    kOp,          // runs `op`: operands -> results; `target` is the site of an allocation, or
                  // kSizeOnly
    kMove,        // results = operands, all read before any is written
    kJump,        // to target
    kJumpUnless,  // operands[0] is false: to target
    kForEnter,    // [lower, upper, step, inits...] -> [iv, carried...]; checks the step
    kForTest,     // [iv, upper]: to target unless iv < upper
    kForNext,     // [iv, step, yielded...] -> [iv, carried...]; to target
    kFree,        // clears the result slots: vectors that nobody reads again
    kMark,        // tells the gate that mark `target` is passed
    kScopeEnd,    // poisons the buffers of sites [operands[0], operands[1]): numbers, not slots
    kReturn,      // operands are the function's results
  };
  Kind kind = Kind::kOp;
  const ir::Op* op = nullptr;
  int32_t operands_begin = 0, operands_end = 0;  // ranges of Program::slots
  int32_t results_begin = 0, results_end = 0;
  int32_t target = 0;
  static constexpr int32_t kSizeOnly = -1;  // a slice whose size alone is used (kernel.cc)
  int32_t loop = -1;                        // the innermost loop around it, of Program::loops
};

// A counted loop, for messages that name an iteration.
struct Loop {
  int32_t parent = -1;
  int32_t counter = 0;  // slot of the induction variable
};

// A place in memory that is the same on all cores (buffer.h).
struct Site {
  Type type;
  std::string name;
  SourceLoc where;
};

struct Program {
  std::vector<Instr> code;
  std::vector<int32_t> slots;      // operand and result lists of all instructions
  std::vector<RtValue> initial;    // the frame at the start: constants are already in it
  std::vector<int32_t> arguments;  // slots of the function's arguments
  std::vector<Site> sites;         // allocations; numbered after the caller's own sites
  std::vector<Loop> loops;

  std::span<const int32_t> operands(const Instr& in) const {
    return {slots.data() + in.operands_begin, slots.data() + in.operands_end};
  }
  std::span<const int32_t> results(const Instr& in) const {
    return {slots.data() + in.results_begin, slots.data() + in.results_end};
  }
};

// Whether the instruction's target is a place in the code.
bool jumps(const Instr& in);

// Puts a kMark with marks[k] before instruction k, or nothing where that is negative. Jumps to k
// come to the mark first.
void insert_marks(Program& program, const std::vector<int32_t>& marks);

// Flattens a func.func. `first_site`: number of its first allocation. Fails with Diagnostics (kind
// invalid_ir) for what the emulator has no values for, such as 64-bit vectors.
std::expected<Program, Diagnostics> flatten(const ir::Op& function, int first_site);

}  // namespace gridless::emulate
