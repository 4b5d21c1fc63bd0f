#include <fmt/format.h>

#include <algorithm>

#include "gridless/ir/text_parser.h"
#include "gridless/ir/versions.h"

namespace gridless::ir {
namespace {

constexpr int64_t kMostResults = 65536;
constexpr size_t kMostPending = 256;

}  // namespace

void TextParser::parse_alias() {
  const size_t at = position();
  const bool is_type = accept("!");
  if (!is_type) accept("#");
  std::string name(word());
  if (name.empty()) fail(at, "expected the name of an alias");
  expect("=", "the name of an alias");
  if (failed()) return;
  if (is_type) {
    type_aliases_[name] = parse_type();
  } else if (peek_is("loc(")) {
    loc_aliases_[name] = parse_loc();
  } else {
    attr_aliases_[name] = parse_attr();
  }
}

Module TextParser::parse_file() {
  Module module;
  Block file;
  open_scope();
  while (!at_end()) {
    if (peek() == '#' || peek() == '!') {
      parse_alias();
    } else {
      parse_op(file);
    }
  }
  close_scope();
  report_undefined();
  if (failed()) return module;
  if (file.ops.size() != 1 || file.ops[0]->code != OpCode::kBuiltinModule) {
    if (!any_error()) {
      report(0, fmt::format("expected one \"builtin.module\" but the text holds {} top-level ops",
                            file.ops.size()));
    }
    return module;
  }
  for (const auto& [op, where] : op_locs_) op->loc = follow(where);
  for (const auto& [value, alias] : arg_aliases_) {
    const auto it = loc_aliases_.find(alias);
    if (it != loc_aliases_.end()) value->name = it->second.name;
  }
  file.ops[0]->parent = nullptr;
  module.top = std::move(file.ops[0]);
  check_version(module);
  return module;
}

void TextParser::check_version(Module& module) {
  for (VersionFault& f : settle_version(module, stable_ops_, plain_ops_)) {
    report(f.at_plain_op ? first_plain_ : 0, std::move(f.message), std::move(f.hint));
  }
}

void TextParser::parse_op(Block& block) {
  Level level(*this);
  if (failed()) return;
  std::vector<Definition> definitions;
  if (peek() == '%') {
    do {
      expect("%", "','");
      Definition d{.at = raw_position()};
      d.name = std::string(suffix_name("a value name after '%'"));
      if (raw_peek() == ':') {
        raw_skip();
        d.count = count(kMostResults, "a number of results");
      }
      definitions.push_back(std::move(d));
    } while (!failed() && accept(","));
    expect("=", "the names of the results");
  }
  const size_t at = position();
  if (peek() != '"') {
    fail(at, "expected an op in generic form: \"dialect.op\"(...)",
         "only MLIR's generic form is read: print the module with --mlir-print-op-generic");
    return;
  }
  const std::string name = quoted();
  auto owned = std::make_unique<Op>();
  Op& op = *owned;
  op.parent = &block;
  std::vector<size_t> places;
  parse_operands(op, places);
  if (peek() == '[') fail("successor blocks are not supported", "use scf.if, scf.for, scf.while");
  if (accept("<{")) {
    op.attrs = parse_dict("}");
    expect(">", "the properties of an op");
  }
  if (accept("(")) {
    do {
      parse_region(op);
    } while (!failed() && accept(","));
    expect(")", "the regions of an op");
  }
  if (accept("{")) {
    for (NamedAttr& a : parse_dict("}")) {
      if (op.find(a.first)) report(at, fmt::format("attribute '{}' is given twice", a.first));
      op.attrs.push_back(std::move(a));
    }
  }
  parse_signature(op, places);
  op.loc = place(at);
  if (peek_is("loc(")) op_locs_.emplace_back(&op, parse_loc());
  if (failed()) return;
  finish_op(op, name, at);

  size_t next = 0;
  for (const Definition& d : definitions) {
    std::vector<Value*> values;
    for (int64_t i = 0; i < d.count && next < op.results.size(); ++i)
      values.push_back(op.result(next++));
    if (values.size() != static_cast<size_t>(d.count)) {
      fail(d.at, fmt::format("'%{}' names {} results but the op's type has {}", d.name, d.count,
                             op.results.size()));
      return;
    }
    define(d.name, std::move(values), d.at);
  }
  if (!definitions.empty() && next != op.results.size()) {
    fail(at, fmt::format("{} results are named but the op's type has {}", next, op.results.size()));
  }
  if (!failed()) block.ops.push_back(std::move(owned));
}

void TextParser::parse_operands(Op& op, std::vector<size_t>& places) {
  expect("(", "the name of an op");
  if (accept(")")) return;
  do {
    const size_t at = position();
    expect("%", "the start of the operands");
    const std::string name(suffix_name("a value name after '%'"));
    int64_t number = 0;
    if (raw_peek() == '#') {
      raw_skip();
      number = count(kMostResults, "the number of a result");
    }
    if (failed()) return;
    places.push_back(at);
    op.operands.push_back(use(name, number, op, at));
  } while (!failed() && accept(","));
  expect(")", "the operands of an op");
}

void TextParser::parse_signature(Op& op, const std::vector<size_t>& places) {
  expect(":", "an op");
  const size_t at = position();
  const std::vector<Type> inputs = parse_types();
  expect("->", "the operand types of an op");
  const std::vector<Type> results = parse_result_types();
  if (failed()) return;
  if (inputs.size() != op.operands.size()) {
    fail(at, fmt::format("{} operands but {} operand types", op.operands.size(), inputs.size()));
    return;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value* v = op.operands[i];
    if (!v->type) {
      v->type = inputs[i];  // a stand-in learns what is expected of it
    } else if (v->type != inputs[i]) {
      report(places[i], fmt::format("operand {} is {} but was defined as {}", i, inputs[i].str(),
                                    v->type.str()));
    }
  }
  for (Type t : results) {
    auto v = std::make_unique<Value>();
    v->type = t;
    v->op = &op;
    v->index = static_cast<int>(op.results.size());
    op.results.push_back(std::move(v));
  }
}

void TextParser::parse_block_label(Block& block) {
  suffix_name("a block name after '^'");
  if (accept("(")) {
    do {
      const size_t at = position();
      expect("%", "the start of the block arguments");
      const std::string name(suffix_name("a value name after '%'"));
      expect(":", "a block argument");
      Value* v = block.add_arg(parse_type());
      if (peek_is("loc(")) {
        const Where where = parse_loc();
        v->name = where.name;
        if (!where.alias.empty() && where.name.empty()) arg_aliases_.emplace_back(v, where.alias);
      }
      if (!failed()) define(name, {v}, at);
    } while (!failed() && accept(","));
    expect(")", "the block arguments");
  }
  expect(":", "a block label");
}

void TextParser::parse_region(Op& op) {
  expect("{", "the start of a region");
  if (failed()) return;
  open_scope();
  op.regions.push_back(std::make_unique<Region>());
  Region& region = *op.regions.back();
  region.parent = &op;
  Block* block = nullptr;
  while (!failed() && peek() != '}') {
    const bool label = accept("^");
    if (label || !block) {
      region.blocks.push_back(std::make_unique<Block>());
      block = region.blocks.back().get();
      block->parent = &region;
    }
    if (label) {
      parse_block_label(*block);
    } else {
      if (at_end()) break;
      parse_op(*block);
    }
  }
  expect("}", "the ops of a region");
  close_scope();
}

void TextParser::finish_op(Op& op, std::string_view name, size_t at) {
  if (name.starts_with(kStablePrefix)) {
    ++stable_ops_;
    name.remove_prefix(kStablePrefix.size());
  } else if (name != "builtin.module") {
    if (plain_ops_++ == 0) first_plain_ = at;
  }
  if (const auto done = upgrade(op, name); !done) {
    report(at, done.error(), "the ops that can be read are those of the op table (ir/op_table.h)");
  }
  if (name == "builtin.module") {
    if (op.regions.size() != 1) {
      fail(at, "builtin.module must have one region");
    } else if (op.regions[0]->blocks.empty()) {
      op.regions[0]->blocks.push_back(std::make_unique<Block>());
      op.regions[0]->blocks[0]->parent = op.regions[0].get();
    }
  }
}

void TextParser::define(const std::string& name, std::vector<Value*> values, size_t at) {
  std::vector<Value*>& seen = values_[name];
  if (!seen.empty()) {
    report(at, fmt::format("'%{}' is defined twice", name));
    return;
  }
  const int scope = static_cast<int>(scopes_.size());
  // Uses that stand before this definition, here or in regions that are closed by now.
  std::erase_if(pending_, [&](Pending& p) {
    if (p.scope < scope || p.name != name) return false;
    if (p.number >= static_cast<int64_t>(values.size())) return false;
    Value* v = values[static_cast<size_t>(p.number)];
    if (p.stand_in->type && p.stand_in->type != v->type) {
      report(p.at, fmt::format("'%{}' is used as {} but is defined as {}", name,
                               p.stand_in->type.str(), v->type.str()));
    }
    std::ranges::replace(p.op->operands, p.stand_in.get(), v);
    return true;
  });
  seen = std::move(values);
  scopes_.back().push_back(name);
}

Value* TextParser::use(const std::string& name, int64_t number, Op& op, size_t at) {
  const auto it = values_.find(name);
  if (it != values_.end() && !it->second.empty()) {
    if (number < static_cast<int64_t>(it->second.size()))
      return it->second[static_cast<size_t>(number)];
    fail(at, fmt::format("'%{}' has no result number {}", name, number));
  }
  pending_.push_back({.name = name,
                      .number = number,
                      .op = &op,
                      .scope = static_cast<int>(scopes_.size()),
                      .at = at,
                      .stand_in = std::make_unique<Value>()});
  if (pending_.size() > kMostPending) {
    report_undefined();
    fail(at, "too many uses of values that are not defined");
  }
  return pending_.empty() ? nullptr : pending_.back().stand_in.get();
}

void TextParser::open_scope() { scopes_.emplace_back(); }

void TextParser::close_scope() {
  for (const std::string& name : scopes_.back()) values_[name].clear();
  scopes_.pop_back();
  // What is still undefined may be defined later in an enclosing region, which is not legal either,
  // but then the verifier can say where.
  const int scope = static_cast<int>(scopes_.size());
  for (Pending& p : pending_) p.scope = std::min(p.scope, scope);
}

void TextParser::report_undefined() {
  if (failed()) return;
  for (const Pending& p : pending_) report(p.at, fmt::format("'%{}' is not defined", p.name));
}

TextParser::Where TextParser::parse_loc() {
  expect("loc", "the start of a location");
  expect("(", "loc");
  Where where = parse_location();
  expect(")", "a location");
  return where;
}

// Of a composite location the first place that has a file is kept: the callee of a callsite, the
// first of a fused list, the place under a name.
TextParser::Where TextParser::parse_location() {
  Level level(*this);
  Where where;
  if (failed()) return where;
  if (accept("#")) {
    where.alias = std::string(word());
    return where;
  }
  if (peek() == '"') {
    std::string text = quoted();
    if (accept(":")) {
      where.loc.file = std::move(text);
      where.loc.line = static_cast<int>(count(INT32_MAX, "a line"));
      expect(":", "a line");
      where.loc.column = static_cast<int>(count(INT32_MAX, "a column"));
      if (accept("to")) {
        if (!accept(":")) {
          count(INT32_MAX, "a line");
          expect(":", "a line");
        }
        count(INT32_MAX, "a column");
      }
    } else if (accept("(")) {
      where = parse_location();
      where.name = std::move(text);
      expect(")", "a location under a name");
    } else {
      where.name = std::move(text);
    }
    return where;
  }
  if (accept("unknown") || accept("?")) return where;
  if (accept("callsite")) {
    expect("(", "callsite");
    where = parse_location();
    expect("at", "the callee of a callsite");
    const Where caller = parse_location();
    expect(")", "callsite");
    if (!where.loc.known() && where.alias.empty()) where = caller;
    return where;
  }
  if (accept("fused")) {
    if (peek() == '<') balanced();
    expect("[", "fused");
    do {
      const Where one = parse_location();
      if (!where.loc.known() && where.alias.empty()) where = one;
    } while (!failed() && accept(","));
    expect("]", "fused locations");
    return where;
  }
  fail("unknown form of location", "loc(\"file\":line:column), loc(unknown), callsite, fused");
  return where;
}

SourceLoc TextParser::follow(const Where& where) const {
  const Where* w = &where;
  // A chain of aliases longer than this refers to itself.
  for (int i = 0; i < kMostNesting && !w->loc.known() && !w->alias.empty(); ++i) {
    const auto it = loc_aliases_.find(w->alias);
    if (it == loc_aliases_.end()) break;
    w = &it->second;
  }
  return w->loc;
}

}  // namespace gridless::ir
