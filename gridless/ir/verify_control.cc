// Functions, loops, branches, scopes, and the ops that only leave traces.
#include <algorithm>

#include "gridless/ir/composite.h"
#include "gridless/ir/source.h"
#include "gridless/ir/verify_ops.h"

namespace gridless::ir {

void OpVerifier::yields(const Op& op, const Op& terminator, size_t first,
                        const std::vector<Type>& types, std::string_view what) {
  std::vector<Type> given;
  for (size_t i = first; i < terminator.operands.size(); ++i)
    given.push_back(terminator.operands[i]->type);
  if (given == types) return;
  // The place to look at is the yield; the op it belongs to stands in the message.
  error(terminator, "shape_mismatch",
        fmt::format("gives {} but the {} of {} ({}) are {}", types_str(given), what, op.info().name,
                    op.loc.str(), types_str(types)),
        "yield as many values, of the same types");
}

void OpVerifier::BuiltinModule(const Op& op) {
  expect(op, &op == module_.top.get(), "invalid_ir", "a module inside a module");
}

void OpVerifier::FuncFunc(const Op& op) {
  const Attr& type = *op.find("function_type");
  const Attr& name = *op.find("sym_name");
  if (!expect(op, op.parent && op.parent == &module_.body(), "invalid_ir",
              "a function inside another op") ||
      !expect(op,
              type.kind() == AttrKind::kType && type->type.kind() == TypeKind::kFunction &&
                  name.kind() == AttrKind::kString,
              "invalid_ir", "function_type must be a function type and sym_name a string"))
    return;
  const std::vector<Type> args = types_of(op.body().args);
  expect(op, args == type->type->inputs, "shape_mismatch", [&] {
    return fmt::format("arguments {} but function_type has {}", types_str(args),
                       types_str(type->type->inputs));
  });
  yields(op, *op.body().ops.back(), 0, type->type->results, "results");
  const Attr* windows = op.find("window_params");
  if (!windows || windows->kind() != AttrKind::kArray) return;
  for (const Attr& w : (*windows)->array) {
    if (w.kind() != AttrKind::kDict) continue;
    for (const NamedAttr& a : w->dict) {
      if (a.first != "transform_indices") continue;
      expect(op, a.second.kind() == AttrKind::kSymbol && module_.function(a.second->text),
             "invalid_ir", "window_params name a transform function that does not exist");
    }
  }
}

void OpVerifier::ScfFor(const Op& op) {
  const Type t = op.operands[0]->type;
  const bool counts = t.is_scalar() && is_integer(t.elem());
  expect(op, counts && op.operands[1]->type == t && op.operands[2]->type == t, "invalid_ir", [&] {
    return fmt::format("bounds and step must be integers of one type, got {}, {} and {}", t.str(),
                       op.operands[1]->type.str(), op.operands[2]->type.str());
  });
  if (const auto step = constant_of(op.operands[2]))
    expect(
        op, *step > 0, "invalid_ir", [&] { return fmt::format("step {}", *step); },
        "loops count upwards");
  std::vector<Type> carried, args{t};
  for (size_t i = 3; i < op.operands.size(); ++i) carried.push_back(op.operands[i]->type);
  args.insert(args.end(), carried.begin(), carried.end());
  expect(
      op, types_of(op.body().args) == args, "shape_mismatch",
      [&] {
        return fmt::format("the body takes {} but the loop gives {}",
                           types_str(types_of(op.body().args)), types_str(args));
      },
      "the counter first, then the carried values");
  expect(op, types_of(op.results) == carried, "shape_mismatch", [&] {
    return fmt::format("carries {} but has results {}", types_str(carried),
                       types_str(types_of(op.results)));
  });
  yields(op, *op.body().ops.back(), 0, carried, "carried values");
}

void OpVerifier::ScfIf(const Op& op) {
  expect(
      op, op.operands[0]->type == Type::scalar(Elem::kI1), "invalid_ir",
      [&] {
        return fmt::format("the condition must be an i1, got {}", op.operands[0]->type.str());
      },
      "compare with arith.cmpi");
  const bool has_else = !op.regions[1]->blocks.empty();
  expect(op, has_else || op.results.empty(), "invalid_ir", "has results but no else branch",
         "give the value of the other case");
  for (size_t i = 0; i < (has_else ? 2U : 1U); ++i) {
    expect(op, op.body(i).args.empty(), "invalid_ir", "a branch takes no arguments");
    yields(op, *op.body(i).ops.back(), 0, types_of(op.results), "results");
  }
}

void OpVerifier::ScfWhile(const Op& op) {
  std::vector<Type> before;
  for (const Value* v : op.operands) before.push_back(v->type);
  const std::vector<Type> after = types_of(op.results);
  expect(op, types_of(op.body(0).args) == before, "shape_mismatch", [&] {
    return fmt::format("the condition's block takes {} but the loop starts with {}",
                       types_str(types_of(op.body(0).args)), types_str(before));
  });
  expect(op, types_of(op.body(1).args) == after, "shape_mismatch", [&] {
    return fmt::format("the body takes {} but the results are {}",
                       types_str(types_of(op.body(1).args)), types_str(after));
  });
  yields(op, *op.body(0).ops.back(), 1, after, "results");
  yields(op, *op.body(1).ops.back(), 0, before, "loop values");
}

void OpVerifier::ScfCondition(const Op& op) {
  expect(op, op.operands[0]->type == Type::scalar(Elem::kI1), "invalid_ir", [&] {
    return fmt::format("the condition must be an i1, got {}", op.operands[0]->type.str());
  });
}

void OpVerifier::TpuRegion(const Op& op) {
  expect(op, op.body().args.empty(), "invalid_ir", "a scope takes no arguments");
  for (const auto& r : op.results) {
    expect(
        op, r->type.is_vector() || r->type.is_scalar(), "invalid_ir",
        [&] { return fmt::format("a scope cannot give {}", r->type.str()); },
        "memory ends with its scope: give a value, or allocate outside");
  }
  yields(op, *op.body().ops.back(), 0, types_of(op.results), "results");
  if (op.find(kCompositeAttr)) composite(op);
  if (op.find(kSourceAttr)) source(op);
}

void OpVerifier::source(const Op& op) {
  const auto is = [&](const char* name, AttrKind kind) {
    const Attr* a = op.find(name);
    return a && a->kind() == kind;
  };
  const bool declared = op.find(kSourceAttr)->kind() == AttrKind::kString &&
                        is("gridless.range", AttrKind::kDenseArray) &&
                        op.ints_attr("gridless.range").size() == 2 &&
                        is("gridless.extents", AttrKind::kDenseArray) &&
                        (!op.find("gridless.alike") || is("gridless.alike", AttrKind::kInt));
  if (!expect(op, declared, "invalid_ir",
              "a source needs a name, gridless.range and gridless.extents"))
    return;
  const Source s = source_of(op);
  const std::string wrong = problem(s);
  expect(op, wrong.empty(), "invalid_ir", wrong);
  expect(op,
         op.results.size() == 1 + s.extents.size() && op.body().ops.size() == 1 &&
             std::ranges::all_of(op.results,
                                 [](const auto& r) { return r->type == Type::scalar(Elem::kI32); }),
         "invalid_ir", [&] {
           return fmt::format(
               "source {} yields its value and {} indices, all i32, and does nothing else", s.name,
               s.extents.size());
         });
  const auto [it, fresh] = sources_.try_emplace(s.name, s);
  expect(op, fresh || it->second == s, "invalid_ir",
         [&] { return fmt::format("source {} is declared twice, differently", s.name); });
}

void OpVerifier::composite(const Op& op) {
  const Attr& name = *op.find(kCompositeAttr);
  const Attr* order = op.find(kOrderAttr);
  if (!expect(op, name.kind() == AttrKind::kString && !name->text.empty(), "invalid_ir",
              "the name of a composite must be a string"))
    return;
  expect(
      op, op.results.empty(), "invalid_ir",
      [&] { return fmt::format("composite {} has results", name->text); }, "outputs are refs");
  const size_t captured = captured_values(op).size();
  bool ok = order && order->kind() == AttrKind::kDenseArray && (*order)->ints.size() == captured;
  if (ok) {
    std::vector<int64_t> sorted = (*order)->ints;
    std::ranges::sort(sorted);
    for (size_t i = 0; i < captured; ++i) ok = ok && sorted[i] == static_cast<int64_t>(i);
  }
  expect(
      op, ok, "invalid_ir",
      [&] {
        return fmt::format("composite {} captures {} values, but gridless.order is {}", name->text,
                           captured,
                           order && order->kind() == AttrKind::kDenseArray
                               ? fmt::format("[{}]", fmt::join((*order)->ints, ", "))
                               : "missing");
      },
      "one number per captured value, a permutation");
}

void OpVerifier::CfAssert(const Op& op) {
  expect(op, op.operands[0]->type == Type::scalar(Elem::kI1), "invalid_ir",
         [&] { return fmt::format("asserts an i1, got {}", op.operands[0]->type.str()); });
}

// Terminators are checked with the op that owns them; traces carry anything.
void OpVerifier::FuncReturn(const Op&) {}
void OpVerifier::ScfYield(const Op&) {}
void OpVerifier::TpuYield(const Op&) {}
void OpVerifier::TpuTraceStart(const Op&) {}
void OpVerifier::TpuTraceStop(const Op&) {}
void OpVerifier::TpuTraceValue(const Op&) {}
void OpVerifier::TpuLog(const Op&) {}
void OpVerifier::TpuLogBuffer(const Op&) {}

}  // namespace gridless::ir
