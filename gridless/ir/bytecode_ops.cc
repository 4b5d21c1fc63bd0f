#include <fmt/format.h>

#include "gridless/ir/bytecode_reader.h"
#include "gridless/ir/text_parser.h"
#include "gridless/ir/versions.h"

namespace gridless::ir {
namespace {

constexpr size_t kMostRegions = 16;

// What an op has, in front of it.
enum OpMask : uint8_t {
  kHasAttrs = 1,
  kHasResults = 2,
  kHasOperands = 4,
  kHasSuccessors = 8,
  kHasRegions = 16,
};

}  // namespace

Module BytecodeReader::read_module() {
  Module module;
  if (!read_file()) return module;
  ByteReader r(ir_, ir_offset_, fault_);
  Block file;
  scopes_.emplace_back();
  size_t next = 0;
  read_block(r, file, next);
  if (!r.failed() && r.left() > 0) r.fail("bytes behind the module");
  if (r.failed()) return module;
  if (file.ops.size() != 1 || file.ops[0]->code != OpCode::kBuiltinModule) {
    if (!any_error()) report("expected one builtin.module");
    return module;
  }
  file.ops[0]->parent = nullptr;
  module.top = std::move(file.ops[0]);
  for (auto& [op, callers] : callers_) module.callers[op] = std::move(callers);
  for (VersionFault& f : settle_version(module, stable_ops_, plain_ops_)) {
    report(std::move(f.message), std::move(f.hint));
    if (f.at_plain_op) diagnostics_.back().where = first_plain_;
  }
  return module;
}

// The number of ops, with a bit for whether arguments stand in front of them.
void BytecodeReader::read_block(ByteReader& r, Block& block, size_t& next) {
  const uint64_t head = r.varint();
  const uint64_t ops = head >> 1;
  if (head & 1) {
    const size_t args = r.count("block arguments");
    for (size_t i = 0; i < args && !r.failed(); ++i) {
      int64_t weight = 1;
      Value* v = block.add_arg(type(r, weight));
      v->name = location(r).name;
      spend(r, weight);
      define(r, v, next);
    }
  }
  if (ops > r.left()) r.fail(fmt::format("{} ops in {} bytes", ops, r.left()));
  for (uint64_t i = 0; i < ops && !r.failed(); ++i) read_op(r, block, next);
}

void BytecodeReader::define(ByteReader& r, Value* value, size_t& next) {
  std::vector<Value*>& values = scopes_.back().values;
  if (next >= values.size()) return r.fail("more values in a region than were announced");
  values[next++] = value;
}

void BytecodeReader::read_op(ByteReader& r, Block& block, size_t& next) {
  block.ops.push_back(std::make_unique<Op>());
  Op& op = *block.ops.back();
  op.parent = &block;
  const size_t name = r.index(op_names_.size(), "op name");
  const uint8_t mask = r.byte();
  Location where = location(r);
  op.loc = std::move(where.loc);
  if (!where.callers.empty()) callers_.emplace_back(&op, std::move(where.callers));
  int64_t weight = 1;
  if (mask & kHasAttrs) {
    const size_t number = r.index(attrs_.size(), "attribute");
    if (r.failed()) return;
    const Attr dictionary = attr_at(number);
    if (!r.failed() && dictionary.kind() != AttrKind::kDict) r.fail("attributes without names");
    if (r.failed()) return;
    op.attrs = dictionary->dict;
    weight += attrs_[number].weight;
    if (ops_ == 0) top_attrs_ = number;
  }
  if (mask & kHasResults) {
    const size_t results = r.count("results");
    for (size_t i = 0; i < results && !r.failed(); ++i) {
      op.results.push_back(std::make_unique<Value>());
      Value& v = *op.results.back();
      v.type = type(r, weight);
      v.op = &op;
      v.index = static_cast<int>(i);
      define(r, &v, next);
    }
  }
  if (mask & kHasOperands) {
    const std::vector<Value*>& values = scopes_.back().values;
    const size_t operands = r.count("operands");
    for (size_t i = 0; i < operands && !r.failed(); ++i) {
      const size_t number = r.index(values.size(), "value");
      if (!r.failed() && (!values[number] || values[number]->op == &op))
        r.fail("a value is used before the op that makes it");
      if (!r.failed()) op.operands.push_back(values[number]);
    }
  }
  if (mask & kHasSuccessors)
    unsupported(r, "successor blocks are not supported", "use scf.if, scf.for, scf.while");
  if (mask & ~(kHasAttrs | kHasResults | kHasOperands | kHasSuccessors | kHasRegions))
    r.fail(fmt::format("an op with the unknown mask {}", mask));
  spend(r, weight);
  if (r.failed()) return;
  ++ops_;
  if (!op.loc.known()) {
    op.loc = SourceLoc(fmt::format("{}:{}", file_, op_names_[name]), static_cast<int>(ops_));
  }
  if (mask & kHasRegions) {
    const uint64_t head = r.varint();
    const size_t regions = static_cast<size_t>(head >> 1);
    if (head >> 1 > kMostRegions) r.fail(fmt::format("an op with {} regions", head >> 1));
    if (!r.failed()) read_regions(r, op, (head & 1) != 0, regions);
  }
  if (!r.failed()) finish_op(op, op_names_[name]);
}

void BytecodeReader::read_regions(ByteReader& r, Op& op, bool isolated, size_t count) {
  Level level(*this, r, kMostNesting);
  if (isolated) scopes_.emplace_back();  // sees no values of the regions around it
  for (size_t i = 0; i < count && !r.failed(); ++i) {
    op.regions.push_back(std::make_unique<Region>());
    op.regions.back()->parent = &op;
    read_region(r, *op.regions.back());
  }
  if (isolated) scopes_.pop_back();
}

// Values are numbered through the regions that are open: those of this one follow those of the ones
// around it.
void BytecodeReader::read_region(ByteReader& r, Region& region) {
  const size_t blocks = r.count("blocks");
  if (blocks == 0) return;
  const size_t values = r.count("values");
  size_t next = scopes_.back().values.size();
  const size_t outside = next;
  scopes_.back().values.resize(next + values);
  for (size_t i = 0; i < blocks && !r.failed(); ++i) {
    region.blocks.push_back(std::make_unique<Block>());
    region.blocks.back()->parent = &region;
    read_block(r, *region.blocks.back(), next);
  }
  if (!r.failed() && next != scopes_.back().values.size())
    r.fail("fewer values in a region than were announced");
  scopes_.back().values.resize(outside);
}

void BytecodeReader::finish_op(Op& op, std::string_view name) {
  if (name.starts_with(kStablePrefix)) {
    ++stable_ops_;
    name.remove_prefix(kStablePrefix.size());
  } else if (name != "builtin.module") {
    if (plain_ops_++ == 0) first_plain_ = op.loc;
  }
  if (const auto done = upgrade(op, name); !done) {
    // One op that is not known is often there many times.
    constexpr size_t kMostDiagnostics = 100;
    if (diagnostics_.size() < kMostDiagnostics) {
      report(done.error(), "the ops that can be read are those of the op table (ir/op_table.h)");
      diagnostics_.back().where = op.loc;
    }
  }
  if (name != "builtin.module") return;
  if (op.regions.size() != 1) {
    report("builtin.module must have one region");
    return;
  }
  Region& region = *op.regions[0];
  if (region.blocks.empty()) {
    region.blocks.push_back(std::make_unique<Block>());
    region.blocks[0]->parent = &region;
  }
}

}  // namespace gridless::ir
