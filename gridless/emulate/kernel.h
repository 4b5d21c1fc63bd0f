// A kernel made ready to run: the flattened body, and what each argument of the entry function is.
//
// Arguments of a Mosaic entry function, in order: one i32 per grid dimension, scalar-prefetch
// tables, inputs, outputs, scratch. Operands of the call: dynamic grid bounds, prefetch tables,
// inputs.
#pragma once

#include "gridless/emulate/program.h"
#include "gridless/ir/call.h"

namespace gridless::emulate {

struct Argument {
  enum class Role : uint8_t { kGridIndex, kPrefetch, kInput, kOutput, kScratch };
  Role role = Role::kScratch;
  int tensor = -1;   // operand (prefetch, input) or result (output) of the call
  int aliased = -1;  // outputs: the operand whose memory this is; inputs: the result that takes it
  Type type;
  std::string name;

  // Windows: the argument is a block of the tensor, chosen anew in every grid step.
  bool is_window = false;
  Program transform;         // grid indices, prefetch refs -> block indices
  bool in_elements = false;  // the transform gives element offsets, not block numbers
  Shape pad_low;             // in_elements: padding before the tensor
  bool synchronous = false;  // one buffer: blocks move between steps, not beside them

  // The chip reaches HBM memory in place; other arguments are copied in before and out after.
  bool in_place() const {
    return !is_window && type.space() != ir::Space::kVmem && type.space() != ir::Space::kSmem;
  }
};

struct Kernel {
  const ir::Op* function = nullptr;
  Program body;
  std::vector<Argument> arguments;
  std::vector<Site> sites;  // of the arguments, the barrier semaphore, the body's allocations
  Shape grid;               // kDynamic where an operand gives the bound; empty: one step
  ir::Call call;
  // By site, in a kernel that runs on scalars only (scalars_only.h): its data are kept, as scalars
  // may come from them. Empty: a kernel that runs on values.
  std::vector<bool> keeps_data;
  bool scalars_only() const { return !keeps_data.empty(); }
  int barrier_site() const { return static_cast<int>(arguments.size()); }
};

// `module` must outlive the kernel.
std::expected<Kernel, Diagnostics> make_kernel(const ir::Module& module, ir::Call call);

// The program takes the barrier semaphore.
bool uses_barrier(const Kernel& kernel);

// Bytes of a call's operand or result in the caller's memory: row-major, 4-bit formats two per
// byte, i1 one per byte.
int64_t tensor_bytes(const ir::CallArg& arg);

}  // namespace gridless::emulate
