// The shape of the module: op table rows, regions and terminators, definitions before uses. What an
// op asks of its own operands stands in verify_*.cc.
#include "gridless/ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "gridless/ir/verify_ops.h"
#include "gridless/ir/visit.h"

namespace gridless::ir {
namespace {

// Operand segments: '1' one operand, '?' none or one, '*' any number, '0' none.
const char* segment_pattern(OpCode code) {
  switch (code) {
    case OpCode::kMemrefAlloca:
      return "00";
    case OpCode::kTpuMemrefSlice:
      return "1**";
    case OpCode::kTpuReinterpretCast:
      return "1?*";
    case OpCode::kTpuVectorLoad:
      return "1*?";
    case OpCode::kTpuVectorStore:
      return "11*?";
    case OpCode::kTpuEnqueueDma:
      return "1?11??0";
    case OpCode::kTpuWaitDma:
      return "1?1???0";
    case OpCode::kTpuSemSignal:
      return "11??0";
    default:
      return nullptr;
  }
}

bool is_terminator(OpCode code) {
  return code == OpCode::kFuncReturn || code == OpCode::kScfYield ||
         code == OpCode::kScfCondition || code == OpCode::kTpuYield;
}

// The op that must end a region; nothing for the module's.
std::optional<OpCode> terminator_of(OpCode code, size_t region) {
  switch (code) {
    case OpCode::kFuncFunc:
      return OpCode::kFuncReturn;
    case OpCode::kScfWhile:
      return region == 0 ? OpCode::kScfCondition : OpCode::kScfYield;
    case OpCode::kScfFor:
    case OpCode::kScfIf:
      return OpCode::kScfYield;
    case OpCode::kTpuRegion:
      return OpCode::kTpuYield;
    default:
      return std::nullopt;
  }
}

class Verifier {
 public:
  Verifier(const Module& module, Diagnostics& out) : out_(out), ops_(module, out) {
    check_op(*module.top);
    check_functions(module);
  }

 private:
  enum class Seen { kVisible, kClosed };

  void fail(const Op& op, std::string message, std::string hint = "") {
    ops_.error(op, "invalid_ir", std::move(message), std::move(hint));
  }

  void check_functions(const Module& module) {
    std::unordered_set<std::string_view> names;
    for (const auto& op : module.body().ops) {
      if (op->code != OpCode::kFuncFunc) {
        fail(*op, "only functions may stand in the module itself");
      } else if (!names.insert(op->text_attr("sym_name")).second) {
        fail(*op, fmt::format("a second function named @{}", op->text_attr("sym_name")));
      }
    }
    if (!module.entry()) {
      fail(*module.top, "no function can be taken as the kernel",
           "name it @main, or give it the attribute tpu.core_type = #tpu.core_type<tc>");
    }
  }

  void check_op(const Op& op) {
    const size_t before = out_.size();
    check_row(op);
    check_operands(op);
    check_regions(op);
    // The rules of the op rely on all of the above.
    if (out_.size() == before) visit(ops_, op);
    for (const auto& r : op.results) seen_[r.get()] = Seen::kVisible;
    // Regions after the op's own rules, so that messages come from the outside in.
    const bool isolated = op.code == OpCode::kFuncFunc;
    std::unordered_map<const Value*, Seen> outside;
    if (isolated) std::swap(outside, seen_);
    for (const auto& region : op.regions) check_region(*region);
    if (isolated) std::swap(outside, seen_);
  }

  void check_row(const Op& op) {
    const OpInfo& row = op.info();
    const auto operands = static_cast<int>(op.operands.size());
    if (operands < row.least_operands || (row.most_operands >= 0 && operands > row.most_operands)) {
      const std::string most = row.most_operands < 0 ? "or more"
                               : row.most_operands == row.least_operands
                                   ? "exactly"
                                   : fmt::format("to {}", row.most_operands);
      fail(op, fmt::format("{} operands, needs {} {}", operands, row.least_operands, most));
    }
    if (row.results >= 0 && static_cast<int>(op.results.size()) != row.results)
      fail(op, fmt::format("{} results, has {} in the table", op.results.size(), row.results));
    if (static_cast<int>(op.regions.size()) != row.regions)
      fail(op, fmt::format("{} regions, needs {}", op.regions.size(), row.regions));
    for (std::string_view rest = row.required; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      if (!op.find(name)) fail(op, fmt::format("requires attribute '{}'", name));
    }
    check_segments(op);
  }

  void check_segments(const Op& op) {
    const char* pattern = segment_pattern(op.code);
    const Attr* a = op.find("operandSegmentSizes");
    if (!pattern || !a) return;
    const std::string_view p(pattern);
    bool ok = a->kind() == AttrKind::kDenseArray && (*a)->elem == Elem::kI32 &&
              (*a)->ints.size() == p.size();
    const auto most = static_cast<int64_t>(op.operands.size());
    int64_t sum = 0;
    for (size_t i = 0; ok && i < p.size(); ++i) {
      const int64_t n = (*a)->ints[i];
      ok = n >= 0 && n <= most && (p[i] == '*' || n <= 1) && (p[i] != '1' || n == 1) &&
           (p[i] != '0' || n == 0);
      sum += n;
    }
    if (ok && sum == most) return;
    fail(
        op, fmt::format("operandSegmentSizes do not fit {} operands (segments: {})", most, pattern),
        "1 = one operand, ? = none or one, * = any number, 0 = none; the sum is the operand count");
  }

  void check_operands(const Op& op) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Value* v = op.operands[i];
      if (!v || !v->type) {
        fail(op, fmt::format("operand {} has no value or no type", i));
        continue;
      }
      const auto it = seen_.find(v);
      if (it != seen_.end() && it->second == Seen::kVisible) continue;
      const std::string what =
          v->op ? fmt::format("the {} at {}", v->op->info().name, v->op->loc.str())
                : "a block argument";
      if (it == seen_.end()) {
        fail(op, fmt::format("operand {} is used before it is defined (by {})", i, what),
             "move the definition up, or out of the inner block, or into the same function");
      } else {
        fail(op,
             fmt::format("operand {} is used outside of the block that defines it ({})", i, what),
             "return the value from the block (yield) or define it before the block");
      }
    }
    for (const auto& r : op.results) {
      if (!r->type) fail(op, "a result has no type");
    }
  }

  void check_regions(const Op& op) {
    for (size_t i = 0; i < op.regions.size(); ++i) {
      const Region& region = *op.regions[i];
      // scf.if without else: no block at all.
      if (region.blocks.empty() && op.code == OpCode::kScfIf && i == 1) continue;
      if (region.blocks.size() != 1) {
        fail(op, fmt::format("region {} has {} blocks, needs one", i, region.blocks.size()));
        continue;
      }
      const Block& block = *region.blocks[0];
      const auto wanted = terminator_of(op.code, i);
      if (wanted && (block.ops.empty() || block.ops.back()->code != *wanted)) {
        fail(op, fmt::format("region {} does not end with {}", i, info(*wanted).name));
      }
      for (size_t k = 0; k < block.ops.size(); ++k) {
        if (!is_terminator(block.ops[k]->code)) continue;
        if (!wanted || block.ops[k]->code != *wanted || k + 1 != block.ops.size())
          fail(*block.ops[k], fmt::format("cannot stand here, inside {}", op.info().name));
      }
    }
  }

  void check_region(const Region& region) {
    for (const auto& block : region.blocks) {
      for (const auto& arg : block->args) seen_[arg.get()] = Seen::kVisible;
      for (const auto& op : block->ops) check_op(*op);
    }
    for (const auto& block : region.blocks) {
      for (const auto& arg : block->args) seen_[arg.get()] = Seen::kClosed;
      for (const auto& op : block->ops)
        for (const auto& r : op->results) seen_[r.get()] = Seen::kClosed;
    }
  }

  Diagnostics& out_;
  OpVerifier ops_;
  std::unordered_map<const Value*, Seen> seen_;
};

}  // namespace

Diagnostics verify(const Module& module) {
  Diagnostics out;
  Verifier(module, out);
  return out;
}

}  // namespace gridless::ir
