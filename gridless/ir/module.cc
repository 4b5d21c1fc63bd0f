#include "gridless/ir/module.h"

#include "gridless/base/check.h"

namespace gridless::ir {

Module::Module() : top(std::make_unique<Op>()) {
  top->code = OpCode::kBuiltinModule;
  auto region = std::make_unique<Region>();
  region->parent = top.get();
  auto block = std::make_unique<Block>();
  block->parent = region.get();
  region->blocks.push_back(std::move(block));
  top->regions.push_back(std::move(region));
}

Op* Module::function(std::string_view name) const {
  for (const auto& op : body().ops) {
    if (op->code != OpCode::kFuncFunc) continue;
    const Attr* sym = op->find("sym_name");
    if (sym && (*sym)->text == name) return op.get();
  }
  return nullptr;
}

Op* Module::entry() const {
  Op* only = nullptr;
  int functions = 0;
  for (const auto& op : body().ops) {
    if (op->code != OpCode::kFuncFunc) continue;
    if (op->find("tpu.core_type")) return op.get();
    only = op.get();
    ++functions;
  }
  if (Op* main = function("main")) return main;
  return functions == 1 ? only : nullptr;
}

Block& Op::body(size_t region) const {
  GRIDLESS_CHECK(region < regions.size() && !regions[region]->blocks.empty(), "{}", info().name);
  return *regions[region]->blocks[0];
}

const Attr* Op::find(std::string_view name) const {
  for (const NamedAttr& a : attrs) {
    if (a.first == name) return &a.second;
  }
  return nullptr;
}

int64_t Op::int_attr(std::string_view name) const {
  const Attr* a = find(name);
  GRIDLESS_CHECK(a && !(*a)->ints.empty(), "{} without integer {}", info().name, name);
  return (*a)->ints[0];
}

int64_t Op::int_attr_or(std::string_view name, int64_t otherwise) const {
  const Attr* a = find(name);
  return a && !(*a)->ints.empty() ? (*a)->ints[0] : otherwise;
}

bool Op::bool_attr_or(std::string_view name, bool otherwise) const {
  return int_attr_or(name, otherwise) != 0;
}

const std::vector<int64_t>& Op::ints_attr(std::string_view name) const {
  const Attr* a = find(name);
  GRIDLESS_CHECK(a && a->kind() == AttrKind::kDenseArray, "{} without array {}", info().name, name);
  return (*a)->ints;
}

std::string_view Op::text_attr(std::string_view name) const {
  const Attr* a = find(name);
  return a ? std::string_view((*a)->text) : std::string_view();
}

void Op::set(std::string_view name, Attr value) {
  for (NamedAttr& a : attrs) {
    if (a.first == name) {
      a.second = std::move(value);
      return;
    }
  }
  attrs.emplace_back(std::string(name), std::move(value));
}

std::vector<Value*> Op::segment(size_t i) const {
  const std::vector<int64_t>& sizes = ints_attr("operandSegmentSizes");
  if (i >= sizes.size()) return {};
  size_t begin = 0;
  for (size_t s = 0; s < i; ++s) begin += static_cast<size_t>(sizes[s]);
  const size_t end = begin + static_cast<size_t>(sizes[i]);
  GRIDLESS_CHECK(end <= operands.size(), "{}", info().name);
  return {operands.begin() + static_cast<std::ptrdiff_t>(begin),
          operands.begin() + static_cast<std::ptrdiff_t>(end)};
}

Value* Block::add_arg(Type type, std::string name) {
  auto v = std::make_unique<Value>();
  v->type = type;
  v->block = this;
  v->index = static_cast<int>(args.size());
  v->name = std::move(name);
  args.push_back(std::move(v));
  return args.back().get();
}

Op* append_op(Block& block, OpCode code, std::vector<Value*> operands,
              std::vector<Type> result_types, std::vector<NamedAttr> attrs, SourceLoc loc,
              int regions, bool with_blocks) {
  auto op = std::make_unique<Op>();
  op->code = code;
  op->loc = std::move(loc);
  op->operands = std::move(operands);
  op->attrs = std::move(attrs);
  op->parent = &block;
  for (Type t : result_types) {
    auto v = std::make_unique<Value>();
    v->type = t;
    v->op = op.get();
    v->index = static_cast<int>(op->results.size());
    op->results.push_back(std::move(v));
  }
  for (int i = 0; i < regions; ++i) {
    auto region = std::make_unique<Region>();
    region->parent = op.get();
    if (with_blocks) {
      auto inner = std::make_unique<Block>();
      inner->parent = region.get();
      region->blocks.push_back(std::move(inner));
    }
    op->regions.push_back(std::move(region));
  }
  block.ops.push_back(std::move(op));
  return block.ops.back().get();
}

}  // namespace gridless::ir
