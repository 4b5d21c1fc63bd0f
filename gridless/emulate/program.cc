#include "gridless/emulate/program.h"

#include <bit>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "gridless/emulate/fault.h"
#include "gridless/emulate/pure_ops.h"
#include "gridless/ir/source.h"

namespace gridless::emulate {
namespace {

using ir::OpCode;
using Kind = Instr::Kind;

// Values without a canonical form: doubles, and vectors of 64-bit integers (index counts as 32
// there).
bool supported(Type type) {
  const auto kind = type.kind();
  if (kind != ir::TypeKind::kVector && kind != ir::TypeKind::kMemRef && !type.is_scalar())
    return true;
  const Elem e = type.elem();
  if (e == Elem::kF64) return false;
  const bool wide = e == Elem::kI64 || e == Elem::kSi64 || e == Elem::kUi64;
  return type.is_scalar() || !wide;
}

class Flattener {
 public:
  Flattener(Program& p, int first_site) : p_(p), first_site_(first_site) {}

  void function(const ir::Op& fn) {
    find_used(fn);
    const ir::Block& body = fn.body();
    for (const auto& arg : body.args) p_.arguments.push_back(slot(arg.get()));
    block(body, {});
  }

 private:
  // A value is used if an op that does something, or whose own result is used, reads it. Uses stand
  // after definitions in pre-order, but for what a loop's yield carries back: yields count as doing
  // something.
  void find_used(const ir::Op& fn) {
    std::vector<const ir::Op*> ops;
    ir::walk(fn, [&](const ir::Op& op) { ops.push_back(&op); });
    for (size_t k = ops.size(); k-- > 0;)
      if (!dead(*ops[k])) used_.insert(ops[k]->operands.begin(), ops[k]->operands.end());
  }

  // What the terminator of a block does: called with the terminator op.
  using Terminator = std::function<void(const ir::Op&)>;

  int32_t slot(const ir::Value* v) {
    const auto [it, fresh] = numbers_.try_emplace(v, static_cast<int32_t>(p_.initial.size()));
    if (fresh) {
      p_.initial.emplace_back();
      if (!supported(v->type)) {
        Diagnostic d{.kind = "invalid_ir",
                     .message = "the emulator has no values of type " + v->type.str()};
        if (v->op) d.where = v->op->loc;
        throw Fault{std::move(d)};
      }
    }
    return it->second;
  }

  std::vector<int32_t> slots_of(const auto& values) {
    std::vector<int32_t> out;
    for (const auto& v : values) out.push_back(slot(&*v));
    return out;
  }

  int32_t emit(Kind kind, const ir::Op* op, const std::vector<int32_t>& operands,
               const std::vector<int32_t>& results, int32_t target = 0) {
    Instr in{.kind = kind, .op = op, .target = target, .loop = loop_};
    in.operands_begin = static_cast<int32_t>(p_.slots.size());
    p_.slots.insert(p_.slots.end(), operands.begin(), operands.end());
    in.operands_end = in.results_begin = static_cast<int32_t>(p_.slots.size());
    p_.slots.insert(p_.slots.end(), results.begin(), results.end());
    in.results_end = static_cast<int32_t>(p_.slots.size());
    p_.code.push_back(in);
    return static_cast<int32_t>(p_.code.size()) - 1;
  }

  int32_t here() const { return static_cast<int32_t>(p_.code.size()); }
  void jump_here(int32_t at) { p_.code[static_cast<size_t>(at)].target = here(); }

  // For each op of the block, the vectors of this block that it is the last to use, itself or
  // inside.
  std::vector<std::vector<int32_t>> last_uses(const ir::Block& block) {
    std::unordered_map<const ir::Value*, size_t> last;
    for (const auto& arg : block.args)
      if (arg->type.is_vector()) last[arg.get()] = 0;
    for (size_t k = 0; k < block.ops.size(); ++k) {
      for (const auto& r : block.ops[k]->results)
        if (r->type.is_vector()) last[r.get()] = k;
      if (last.empty()) continue;
      ir::walk(*block.ops[k], [&](const ir::Op& inner) {
        for (const ir::Value* v : inner.operands)
          if (v->type.is_vector())
            if (const auto it = last.find(v); it != last.end()) it->second = k;
      });
    }
    std::vector<std::vector<int32_t>> out(block.ops.size());
    for (const auto& [value, k] : last) {
      const bool constant = value->op && value->op->code == OpCode::kArithConstant;
      if (!constant && (!value->op || !dead(*value->op))) out[k].push_back(slot(value));
    }
    return out;
  }

  // Loads and arithmetic whose results nobody uses. Pallas writes a vector.load before every
  // store.
  bool dead(const ir::Op& op) const {
    const ir::Effect effect = op.info().effect;
    if (effect != ir::Effect::kPure && effect != ir::Effect::kReadRef) return false;
    for (const auto& r : op.results)
      if (used_.contains(r.get())) return false;
    return !op.results.empty();
  }

  void block(const ir::Block& block, const Terminator& terminator) {
    const auto frees = last_uses(block);
    for (size_t k = 0; k < block.ops.size(); ++k) {
      const ir::Op& op = *block.ops[k];
      const bool is_last = k + 1 == block.ops.size();
      if (is_last && terminator) {
        terminator(op);
        return;
      }
      if (!dead(op)) this->op(op);
      if (!frees[k].empty() && !is_last) emit(Kind::kFree, &op, {}, frees[k]);
    }
  }

  // The value of a constant. Big zero vectors are common and all alike, so splats share theirs.
  RtValue constant(const ir::Op& op) {
    const ir::AttrData& a = **op.find("value");
    if (a.kind != ir::AttrKind::kDense || a.ints.size() + a.reals.size() != 1) {
      return PureOps{{}}.run(op);
    }
    const uint64_t bits =
        a.ints.empty() ? std::bit_cast<uint64_t>(a.reals[0]) : static_cast<uint64_t>(a.ints[0]);
    const auto [it, fresh] = splats_.try_emplace({&*a.type, bits});
    if (fresh) it->second = PureOps{{}}.run(op);
    return it->second;
  }

  void op(const ir::Op& op) {
    switch (op.code) {
      case OpCode::kScfFor:
        return for_op(op);
      case OpCode::kScfIf:
        return if_op(op);
      case OpCode::kScfWhile:
        return while_op(op);
      case OpCode::kTpuRegion:
        return region_op(op);
      case OpCode::kFuncReturn:
        emit(Kind::kReturn, &op, slots_of(op.operands), {});
        return;
      case OpCode::kArithConstant: {
        const int32_t s = slot(op.result());  // may grow `initial`
        p_.initial[static_cast<size_t>(s)] = constant(op);
        return;
      }
      default:
        break;
    }
    const int32_t at = emit(Kind::kOp, &op, slots_of(op.operands), slots_of(op.results));
    if (op.code == OpCode::kMemrefAlloca || op.code == OpCode::kTpuSemAlloc) {
      p_.code[static_cast<size_t>(at)].target = first_site_ + static_cast<int32_t>(p_.sites.size());
      const bool sem = op.code == OpCode::kTpuSemAlloc;
      p_.sites.push_back({op.result()->type, sem ? "sem_alloc" : "alloca", op.loc});
    }
  }

  void for_op(const ir::Op& op) {
    const ir::Block& body = op.body();
    const std::vector<int32_t> in = slots_of(op.operands), carried = slots_of(body.args);
    const std::vector<int32_t> values(carried.begin() + 1, carried.end());
    emit(Kind::kForEnter, &op, in, carried);
    const int32_t test = emit(Kind::kForTest, &op, {carried[0], in[1]}, {});
    const size_t first = p_.sites.size();
    const int32_t around = loop_;
    p_.loops.push_back({around, carried[0]});
    loop_ = static_cast<int32_t>(p_.loops.size()) - 1;
    block(body, [&](const ir::Op& yield) {
      end_scope(op, first);  // a round that allocates gets its memory anew
      std::vector<int32_t> next = {carried[0], in[2]};
      for (int32_t s : slots_of(yield.operands)) next.push_back(s);
      emit(Kind::kForNext, &op, next, carried, test);
    });
    loop_ = around;
    jump_here(test);
    emit(Kind::kMove, &op, values, slots_of(op.results));
    free(body);
  }

  void if_op(const ir::Op& op) {
    const std::vector<int32_t> results = slots_of(op.results);
    const auto branch = [&](size_t region) {
      if (op.regions[region]->blocks.empty() || op.body(region).ops.empty()) return;
      block(op.body(region), [&](const ir::Op& yield) {
        emit(Kind::kMove, &op, slots_of(yield.operands), results);
      });
    };
    const int32_t test = emit(Kind::kJumpUnless, &op, {slot(op.operands[0])}, {});
    branch(0);
    const int32_t skip = emit(Kind::kJump, &op, {}, {});
    jump_here(test);
    branch(1);
    jump_here(skip);
  }

  void while_op(const ir::Op& op) {
    const ir::Block& before = op.body(0);
    const ir::Block& after = op.body(1);
    const std::vector<int32_t> before_args = slots_of(before.args),
                               after_args = slots_of(after.args);
    emit(Kind::kMove, &op, slots_of(op.operands), before_args);
    const int32_t head = here();
    int32_t test = 0;
    std::vector<int32_t> passed;
    block(before, [&](const ir::Op& condition) {
      passed = slots_of(condition.operands);
      test = emit(Kind::kJumpUnless, &op, {passed[0]}, {});
      passed.erase(passed.begin());
      emit(Kind::kMove, &op, passed, after_args);
    });
    block(after, [&](const ir::Op& yield) {
      emit(Kind::kMove, &op, slots_of(yield.operands), before_args);
      emit(Kind::kJump, &op, {}, {}, head);
    });
    jump_here(test);
    emit(Kind::kMove, &op, passed, slots_of(op.results));
    free(before);
    free(after);
  }

  void region_op(const ir::Op& op) {
    const size_t first = p_.sites.size();
    block(op.body(), [&](const ir::Op& yield) {
      if (ir::is_source(op)) {
        emit(Kind::kOp, &op, slots_of(yield.operands), slots_of(op.results));
        return;
      }
      emit(Kind::kMove, &op, slots_of(yield.operands), slots_of(op.results));
    });
    end_scope(op, first);
  }

  void end_scope(const ir::Op& op, size_t first) {
    const auto from = first_site_ + static_cast<int32_t>(first);
    const auto to = first_site_ + static_cast<int32_t>(p_.sites.size());
    if (to > from) emit(Kind::kScopeEnd, &op, {from, to}, {});
  }

  // After a loop: what its arguments still hold.
  void free(const ir::Block& block) {
    std::vector<int32_t> held;
    for (const auto& arg : block.args)
      if (arg->type.is_vector()) held.push_back(slot(arg.get()));
    if (!held.empty()) emit(Kind::kFree, block.parent->parent, {}, held);
  }

  Program& p_;
  int first_site_;
  int32_t loop_ = -1;  // the loop that is being flattened
  std::unordered_map<const ir::Value*, int32_t> numbers_;
  std::unordered_set<const ir::Value*> used_;
  std::map<std::pair<const ir::TypeData*, uint64_t>, RtValue> splats_;
};

}  // namespace

bool jumps(const Instr& in) {
  return in.kind == Kind::kJump || in.kind == Kind::kJumpUnless || in.kind == Kind::kForTest ||
         in.kind == Kind::kForNext;
}

void insert_marks(Program& program, const std::vector<int32_t>& marks) {
  std::vector<int32_t> place;  // where an instruction goes, its mark included
  std::vector<Instr> code;
  for (size_t k = 0; k < program.code.size(); ++k) {
    place.push_back(static_cast<int32_t>(code.size()));
    if (marks[k] >= 0)
      code.push_back({.kind = Kind::kMark, .target = marks[k], .loop = program.code[k].loop});
    code.push_back(program.code[k]);
  }
  place.push_back(static_cast<int32_t>(code.size()));
  for (Instr& in : code)
    if (jumps(in)) in.target = place[static_cast<size_t>(in.target)];
  program.code = std::move(code);
}

std::expected<Program, Diagnostics> flatten(const ir::Op& function, int first_site) {
  Program p;
  try {
    Flattener f(p, first_site);
    f.function(function);
  } catch (Fault& f) {
    return std::unexpected(Diagnostics{std::move(f.diagnostic)});
  }
  return p;
}

}  // namespace gridless::emulate
