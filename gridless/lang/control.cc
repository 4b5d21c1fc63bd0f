#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gridless/ir/composite.h"
#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::Attr;
using ir::NamedAttr;
using ir::Op;
using ir::OpCode;
using ir::Type;
using ir::Value;

namespace {

// The i1 of a run-time condition.
Value* truth(Kernel& k, const Scalar& s, Where w) {
  if (s.elem() == Elem::kI1) return s.value();
  k.error("shape_mismatch", fmt::format("a condition of {}", spelling(s.elem())),
          "compare it with something: the condition is an i1", w);
  return (s != ScalarArg(ir::is_float(s.elem()) ? Scalar(0.0) : Scalar(0), w)).value();
}

}  // namespace

Op* Kernel::begin_loop(Scalar from, Scalar to, std::vector<Value*> inits, Where w) {
  std::vector<Value*> operands = {as_i32(from, w), as_i32(to, w), as_i32(1, w)};
  std::vector<Type> types;
  for (Value* v : inits) types.push_back(v->type);
  operands.insert(operands.end(), inits.begin(), inits.end());
  Op* op = emit(OpCode::kScfFor, std::move(operands), types, {}, w, 1);
  op->body().add_arg(Type::scalar(Elem::kI32));
  for (Type t : types) op->body().add_arg(t);
  return op;
}

void Kernel::loop(Scalar from, Scalar to, const std::function<void(Scalar)>& body, Where w) {
  Op* op = begin_loop(from, to, {}, w);
  in_block(op->body(), [&] {
    body(Scalar(this, op->body().args[0].get()));
    emit(OpCode::kScfYield, {}, {}, {}, w);
  });
}

std::vector<Vec> Kernel::loop(Scalar from, Scalar to, std::vector<Vec> init,
                              const std::function<std::vector<Vec>(Scalar, std::vector<Vec>)>& body,
                              Where w) {
  std::vector<Value*> inits;
  for (const Vec& v : init) inits.push_back(v.value());
  Op* op = begin_loop(from, to, inits, w);
  in_block(op->body(), [&] {
    std::vector<Vec> carried;
    for (size_t i = 0; i < init.size(); ++i)
      carried.emplace_back(this, op->body().args[i + 1].get());
    const std::vector<Vec> next = body(Scalar(this, op->body().args[0].get()), carried);
    std::vector<Value*> yields;
    for (size_t i = 0; i < init.size(); ++i) {
      if (next.size() != init.size() || next[i].value()->type != inits[i]->type) {
        error("shape_mismatch",
              fmt::format("the loop carries {} but its body gives {}", inits[i]->type.str(),
                          i < next.size() ? next[i].value()->type.str() : "nothing"),
              "the body must give back values of the types it started with", w);
        yields.push_back(inits[i]);
      } else {
        yields.push_back(next[i].value());
      }
    }
    emit(OpCode::kScfYield, yields, {}, {}, w);
  });
  std::vector<Vec> out;
  for (size_t i = 0; i < init.size(); ++i) out.emplace_back(this, op->result(i));
  return out;
}

Vec Kernel::loop(Scalar from, Scalar to, Vec init, const std::function<Vec(Scalar, Vec)>& body,
                 Where w) {
  return loop(
      from, to, std::vector<Vec>{init},
      [&](Scalar i, std::vector<Vec> c) { return std::vector<Vec>{body(i, c[0])}; }, w)[0];
}

Scalar Kernel::loop(Scalar from, Scalar to, Scalar init,
                    const std::function<Scalar(Scalar, Scalar)>& body, Where w) {
  Op* op = begin_loop(from, to, {as_i32(init, w)}, w);
  in_block(op->body(), [&] {
    const Scalar next =
        body(Scalar(this, op->body().args[0].get()), Scalar(this, op->body().args[1].get()));
    emit(OpCode::kScfYield, {as_i32(next, w)}, {}, {}, w);
  });
  return Scalar(this, op->result());
}

void Kernel::if_(Scalar condition, const std::function<void()>& then,
                 const std::function<void()>& otherwise, Where w) {
  if (condition.is_constant()) {  // decided now: no branch in the program
    if (condition.constant()) {
      then();
    } else if (otherwise) {
      otherwise();
    }
    return;
  }
  Op* op = emit(OpCode::kScfIf, {truth(*this, condition, w)}, {}, {}, w, 2);
  for (int i = 0; i < 2; ++i) {
    in_block(op->body(static_cast<size_t>(i)), [&] {
      if (i == 0) then();
      if (i == 1 && otherwise) otherwise();
      emit(OpCode::kScfYield, {}, {}, {}, w);
    });
  }
}

Vec Kernel::choose(Scalar condition, const std::function<Vec()>& then,
                   const std::function<Vec()>& otherwise, Where w) {
  if (condition.is_constant()) return condition.constant() ? then() : otherwise();
  // The result type is known only after the first branch was built.
  Op* op = emit(OpCode::kScfIf, {truth(*this, condition, w)}, {Type::none()}, {}, w, 2);
  for (size_t i = 0; i < 2; ++i) {
    in_block(op->body(i), [&] {
      const Vec v = i == 0 ? then() : otherwise();
      if (i == 0) op->result()->type = v.value()->type;
      if (v.value()->type != op->result()->type) {
        error("shape_mismatch",
              fmt::format("the branches of choose() give {} and {}", op->result()->type.str(),
                          v.value()->type.str()),
              "both must give one type: cast() or reshape() in one of them", w);
      }
      emit(OpCode::kScfYield, {v.value()}, {}, {}, w);
    });
  }
  return Vec(this, op->result());
}

Scalar Kernel::while_(Scalar init, const std::function<Scalar(Scalar)>& condition,
                      const std::function<Scalar(Scalar)>& body, Where w) {
  const Type i32 = Type::scalar(Elem::kI32);
  Op* op = emit(OpCode::kScfWhile, {as_i32(init, w)}, {i32}, {}, w, 2);
  Value* before = op->body(0).add_arg(i32);
  Value* after = op->body(1).add_arg(i32);
  in_block(op->body(0), [&] {
    Scalar go = condition(Scalar(this, before));
    if (go.is_constant()) {
      error("invalid_ir",
            "the condition of while_ is the constant " + std::to_string(go.constant()),
            "make it depend on the value the loop carries", w);
      go = Scalar(this, before) != ScalarArg(0, w);
    }
    emit(OpCode::kScfCondition, {truth(*this, go, w), before}, {}, {}, w);
  });
  in_block(op->body(1),
           [&] { emit(OpCode::kScfYield, {as_i32(body(Scalar(this, after)), w)}, {}, {}, w); });
  return Scalar(this, op->result());
}

void Kernel::trace(std::string_view name, const std::function<void()>& body, Where w) {
  emit(OpCode::kTpuTraceStart, {}, {},
       {{"level", Attr::i32(10)}, {"message", Attr::string(std::string(name))}}, w);
  body();
  emit(OpCode::kTpuTraceStop, {}, {}, {}, w);
}

void Kernel::delay(Scalar ns, Where w) { emit(OpCode::kTpuDelay, {as_i32(ns, w)}, {}, {}, w); }

Scalar Kernel::assume_multiple(Scalar s, int64_t n, Where w) {
  if (s.is_constant()) {
    if (n > 0 && s.constant() % n == 0) return s;
    error("misaligned", fmt::format("assume_multiple({}, {})", s.constant(), n),
          "the promise is false for this constant", w);
    return s;
  }
  return Scalar(this, emit1(OpCode::kTpuAssumeMultiple, {as_i32(s, w)}, Type::scalar(Elem::kI32),
                            {{"multiple", Attr::i32(n)}}, w));
}

void Kernel::require(Scalar condition, std::string_view message, Where w) {
  if (condition.is_constant()) {
    if (!condition.constant())
      error("invalid_ir", std::string(message), "require() is false here", w);
    return;
  }
  emit(OpCode::kCfAssert, {truth(*this, condition, w)}, {},
       {{"msg", Attr::string(std::string(message))}}, w);
}

void Kernel::composite(std::string_view name, const std::vector<Operand>& operands,
                       const std::vector<Param>& params, const std::function<void()>& body,
                       Where w) {
  std::vector<NamedAttr> attrs = {
      {std::string(ir::kCompositeAttr), Attr::string(std::string(name))}};
  for (const Param& p : params) attrs.emplace_back("gridless." + p.name, p.value);
  Op* region = emit(OpCode::kTpuRegion, {}, {}, std::move(attrs), w, 1);
  in_block(region->body(), [&] {
    body();
    emit(OpCode::kTpuYield, {}, {}, {}, w);
  });
  const std::vector<Value*> captured = ir::captured_values(*region);
  std::vector<int64_t> order;
  for (const Operand& o : operands) {
    const auto it = std::ranges::find(captured, o.value);
    if (it == captured.end()) {
      error("invalid_ir",
            fmt::format("operand {} of composite {} is not used by its body", order.size(), name),
            "list only what the body uses, and no constants", w);
      return;
    }
    order.push_back(it - captured.begin());
  }
  if (captured.size() != operands.size()) {
    error("invalid_ir",
          fmt::format("the body of composite {} uses {} values from outside, its contract lists {}",
                      name, captured.size(), operands.size()),
          "add the missing refs and scalars to the operands", w);
    return;
  }
  region->set(ir::kOrderAttr, Attr::dense_array(Elem::kI64, std::move(order)));
}

}  // namespace gridless::lang
