#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "gridless/base/check.h"
#include "gridless/ir/text.h"
#include "gridless/ir/versions.h"

namespace gridless::ir {
namespace {

bool is_property(const NamedAttr& a) {
  return a.first == "sym_name" || a.first == "sym_visibility";
}

class Printer {
 public:
  Printer(const Module& module, const PrintOptions& options)
      : module_(module), options_(options), version_(options.version) {
    GRIDLESS_CHECK(version_ >= kOldestVersion && version_ <= kNewestVersion, "version {}",
                   version_);
    number_all();
  }

  std::string print() {
    print_op(*module_.top, 0);
    return std::move(out_);
  }

 private:
  // The numbers that MLIR gives: a whole region first, then the regions inside it, the last one
  // first. So the text of a module is the same, to the byte, as MLIR's own.
  void number_all() {
    std::vector<const Region*> open;
    const auto push = [&](const Op& op) {
      for (const auto& region : op.regions) open.push_back(region.get());
    };
    push(*module_.top);
    while (!open.empty()) {
      const Region& region = *open.back();
      open.pop_back();
      for (const auto& block : region.blocks) {
        for (const auto& arg : block->args) numbers_[arg.get()] = next_arg_++;
        for (const auto& op : block->ops) {
          if (wants_dummy_zero(*op, version_)) zeros_[op.get()] = next_value_++;
          if (!op->results.empty()) numbers_[op.get()] = next_value_++;
        }
      }
      for (const auto& block : region.blocks)
        for (const auto& op : block->ops) push(*op);
    }
  }

  std::string name(const Value* v) {
    if (!v->op) return fmt::format("%arg{}", numbers_[v]);
    const int n = numbers_[v->op];
    return v->op->results.size() > 1 ? fmt::format("%{}#{}", n, v->index) : fmt::format("%{}", n);
  }

  void print_region(const Region& region, int indent) {
    out_ += "{\n";
    // A lone block without arguments needs a label only when it would look like no block at all.
    const bool bare = region.blocks.size() == 1 && region.blocks[0]->args.empty() &&
                      !region.blocks[0]->ops.empty();
    for (size_t b = 0; b < region.blocks.size(); ++b) {
      const Block& block = *region.blocks[b];
      if (!bare) {
        out_.append(static_cast<size_t>(indent), ' ');
        out_ += fmt::format("^bb{}", b);
        for (size_t i = 0; i < block.args.size(); ++i) {
          const Value* arg = block.args[i].get();
          out_ += fmt::format("{}{}: {}", i ? ", " : "(", name(arg), arg->type.str());
          if (options_.locations && !arg->name.empty())
            out_ += fmt::format(" loc({})", print_string(arg->name));
        }
        out_ += block.args.empty() ? ":\n" : "):\n";
      }
      for (const auto& op : block.ops) print_op(*op, indent + 2);
    }
    out_.append(static_cast<size_t>(indent), ' ');
    out_ += '}';
  }

  void print_zero(int number, int indent) {
    out_.append(static_cast<size_t>(indent), ' ');
    out_ += fmt::format(
        "%{} = \"stable_mosaic.arith.constant\"() {{value = 0 : i32}} : () -> i32\n", number);
  }

  void print_op(const Op& op, int indent) {
    const bool is_module = op.code == OpCode::kBuiltinModule;
    const Spelling s = spell(op, version_);
    if (s.dummy_zero) print_zero(zeros_[&op], indent);
    out_.append(static_cast<size_t>(indent), ' ');
    if (!op.results.empty()) {
      out_ += fmt::format("%{}", numbers_[&op]);
      if (op.results.size() > 1) out_ += fmt::format(":{}", op.results.size());
      out_ += " = ";
    }
    out_ += fmt::format("\"{}{}\"(", is_module ? "" : "stable_mosaic.", s.name);
    for (size_t i = 0; i < s.operands.size(); ++i) {
      if (i) out_ += ", ";
      out_ += s.operands[i] ? name(s.operands[i]) : fmt::format("%{}", zeros_[&op]);
    }
    out_ += ')';
    std::vector<NamedAttr> attrs = s.attrs;
    if (is_module) {
      std::vector<NamedAttr> properties;
      std::ranges::copy_if(attrs, std::back_inserter(properties), is_property);
      std::erase_if(attrs, is_property);
      if (!properties.empty()) out_ += " <" + print_dict(properties) + ">";
      if (&op == module_.top.get())
        attrs.emplace_back("stable_mosaic.version", Attr::i64(version_));
    }
    for (size_t i = 0; i < op.regions.size(); ++i) {
      out_ += i ? ", " : " (";
      print_region(*op.regions[i], indent);
    }
    if (!op.regions.empty()) out_ += ')';
    if (!attrs.empty()) out_ += ' ' + print_dict(attrs);
    out_ += " : (";
    for (size_t i = 0; i < s.operands.size(); ++i) {
      if (i) out_ += ", ";
      out_ += s.operands[i] ? s.operands[i]->type.str() : "i32";
    }
    out_ += ") -> ";
    // Without its parentheses a function type would read as a list of results.
    if (op.results.size() == 1 && op.result()->type.kind() != TypeKind::kFunction) {
      out_ += op.result()->type.str();
    } else {
      out_ += '(';
      for (size_t i = 0; i < op.results.size(); ++i)
        out_ += (i ? ", " : "") + op.result(i)->type.str();
      out_ += ')';
    }
    if (options_.locations && op.loc.known()) {
      out_ += fmt::format(" loc({}:{}:{})", print_string(op.loc.file), op.loc.line, op.loc.column);
    }
    out_ += '\n';
  }

  const Module& module_;
  const PrintOptions& options_;
  int version_;
  std::string out_;
  std::unordered_map<const void*, int> numbers_;
  std::unordered_map<const Op*, int> zeros_;
  int next_value_ = 0, next_arg_ = 0;
};

}  // namespace

std::string print(const Module& module, const PrintOptions& options) {
  return Printer(module, options).print();
}

}  // namespace gridless::ir
