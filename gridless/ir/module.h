// The one IR: a module of functions whose ops are the ops of the Mosaic TPU dialect.
//
// (The prose semantics - evaluation order, DMA start and completion, waits, rounding, what is
// undefined - stand in ir/semantics.h, which is the page to read first.)
//
// Ownership: a Module owns one top op (builtin.module); an Op owns its regions, a Region its
// blocks, a Block its arguments and ops. Values are owned by the op or block that defines them and
// live at a stable address. A module is built by one thread; afterwards any number may read it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gridless/base/diagnostic.h"
#include "gridless/ir/attr.h"
#include "gridless/ir/op_table.h"
#include "gridless/ir/type.h"

namespace gridless::ir {

struct Op;
struct Block;
struct Region;

struct Value {
  Type type;
  Op* op = nullptr;        // the op that defines it, or null for a block argument
  Block* block = nullptr;  // the block it is an argument of, or null
  int index = 0;           // number among the results or arguments
  std::string name;        // argument names of the language, for messages; may be empty
};

struct Op {
  OpCode code = OpCode::kBuiltinModule;
  SourceLoc loc;
  std::vector<Value*> operands;
  std::vector<std::unique_ptr<Value>> results;
  std::vector<NamedAttr> attrs;  // in printing order
  std::vector<std::unique_ptr<Region>> regions;
  Block* parent = nullptr;

  const OpInfo& info() const { return ir::info(code); }
  Value* result(size_t i = 0) const { return results[i].get(); }
  Block& body(size_t region = 0) const;  // the single block of a region
  const Attr* find(std::string_view name) const;
  // Typed access; CHECK-fails when the attribute is missing or of another kind (the verifier has
  // looked before), except the _or forms.
  int64_t int_attr(std::string_view name) const;
  int64_t int_attr_or(std::string_view name, int64_t otherwise) const;
  bool bool_attr_or(std::string_view name, bool otherwise) const;
  const std::vector<int64_t>& ints_attr(std::string_view name) const;  // array<i32: ...>
  std::string_view text_attr(std::string_view name) const;  // string, symbol or opaque text
  void set(std::string_view name, Attr value);
  // Operand segments (operandSegmentSizes) of ops that have optional operands: segment i as a
  // range.
  std::vector<Value*> segment(size_t i) const;
};

struct Block {
  std::vector<std::unique_ptr<Value>> args;
  std::vector<std::unique_ptr<Op>> ops;
  Region* parent = nullptr;
  Value* add_arg(Type type, std::string name = "");
};

struct Region {
  std::vector<std::unique_ptr<Block>> blocks;
  Op* parent = nullptr;
};

struct Module {
  Module();  // an empty builtin.module
  std::unique_ptr<Op> top;
  int64_t version = 18;  // stable_mosaic.version the text had; printing chooses its own
  // Where the function that an op stands in was called from, innermost first; for ops of modules
  // that came with such locations (JAX's).
  std::unordered_map<const Op*, std::vector<SourceLoc>> callers = {};

  Block& body() const { return top->body(); }
  // The kernel: the function with tpu.core_type, else @main, else the only one. Null if none.
  Op* entry() const;
  // A function by its symbol name, or null.
  Op* function(std::string_view name) const;
};

// Creates an op at the end of `block`. Results get `result_types`; regions are created empty (each
// with one block when `with_blocks`).
Op* append_op(Block& block, OpCode code, std::vector<Value*> operands,
              std::vector<Type> result_types, std::vector<NamedAttr> attrs, SourceLoc loc,
              int regions = 0, bool with_blocks = true);

// Visits every op under `op` in pre-order, `op` included.
template <typename F>
void walk(const Op& op, const F& f) {
  f(op);
  for (const auto& region : op.regions)
    for (const auto& block : region->blocks)
      for (const auto& inner : block->ops) walk(*inner, f);
}

}  // namespace gridless::ir
