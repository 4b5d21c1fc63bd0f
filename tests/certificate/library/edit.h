// Edits of a module in place, for the mutants.
#pragma once

#include <vector>

#include "gridless/ir/module.h"

namespace gridless::certificate {

// The ops of the entry function in pre-order: equal modules give equal numbers.
std::vector<ir::Op*> ops_of(ir::Module& module);

// Its place in its block.
size_t place_of(const ir::Op& op);
// The next (step 1) or previous (-1) op of the block that does something at run time; null: none.
ir::Op* neighbour(const ir::Op& op, int step);

void erase(ir::Op& op);
void duplicate(ir::Op& op);  // right after it
// To place `place` of its block, counted without it.
void move_to(ir::Op& op, size_t place);

// New ops right before `op`.
ir::Value* constant_before(ir::Op& op, ir::Type type, int64_t value);
ir::Value* binary_before(ir::Op& op, ir::OpCode code, ir::Value* a, ir::Value* b);
ir::Value* insert_before(ir::Op& op, ir::OpCode code, std::vector<ir::Value*> operands,
                         ir::Type result, std::vector<ir::NamedAttr> attrs);

// Values of the type of `like` that can be used at `op`, `like` itself left out.
std::vector<ir::Value*> others_visible(const ir::Op& op, const ir::Value* like);
// What a chain of views starts from.
const ir::Value* root(const ir::Value* v);
// The operand number at which a segment begins, and how many it has.
struct Segment {
  size_t begin = 0, count = 0;
};
Segment segment(const ir::Op& op, size_t i);

}  // namespace gridless::certificate
