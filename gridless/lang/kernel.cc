#include "gridless/lang/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "gridless/base/check.h"
#include "gridless/ir/composite.h"
#include "gridless/ir/verifier.h"

namespace gridless::lang {

using ir::Attr;
using ir::NamedAttr;
using ir::Op;
using ir::OpCode;
using ir::Type;
using ir::Value;

namespace {

NamedAttr segments(std::vector<int64_t> sizes) {
  return {"operandSegmentSizes", Attr::dense_array(Elem::kI32, std::move(sizes))};
}

}  // namespace

Kernel::Kernel(std::string name, int cores, Where w) {
  call_.name = std::move(name);
  call_.cores = cores;
  function_ = ir::append_op(module_.body(), OpCode::kFuncFunc, {}, {}, {}, w, 1);
  block_ = &function_->body();
}

Kernel::~Kernel() = default;

void Kernel::error(std::string kind, std::string message, std::string hint, Where w) {
  diagnostics_.push_back({.kind = std::move(kind),
                          .message = std::move(message),
                          .where = w,
                          .notes = {},
                          .hint = std::move(hint)});
}

Op* Kernel::emit(OpCode code, std::vector<Value*> operands, std::vector<Type> results,
                 std::vector<NamedAttr> attrs, Where w, int regions) {
  return ir::append_op(*block_, code, std::move(operands), std::move(results), std::move(attrs), w,
                       regions);
}

Value* Kernel::emit1(OpCode code, std::vector<Value*> operands, Type result,
                     std::vector<NamedAttr> attrs, Where w) {
  return emit(code, std::move(operands), {result}, std::move(attrs), w)->result();
}

void Kernel::in_block(ir::Block& block, const std::function<void()>& body) {
  ir::Block* saved = std::exchange(block_, &block);
  body();
  block_ = saved;
}

Value* Kernel::as_i32(Scalar s, Where w) {
  const Type i32 = Type::scalar(Elem::kI32);
  if (s.is_constant()) {
    return emit1(OpCode::kArithConstant, {}, i32, {{"value", Attr::i32(s.constant())}}, w);
  }
  if (s.elem() == Elem::kIndex) return emit1(OpCode::kArithIndexCast, {s.value()}, i32, {}, w);
  return s.value();
}

Value* Kernel::as_index(Scalar s, Where w) {
  if (s.is_constant()) {
    return emit1(OpCode::kArithConstant, {}, Type::index(),
                 {{"value", Attr::integer(s.constant(), Type::index())}}, w);
  }
  if (s.elem() == Elem::kIndex) return s.value();
  return emit1(OpCode::kArithIndexCast, {s.value()}, Type::index(), {}, w);
}

Vec Kernel::constant(Shape shape, Elem e, double value, Where w) {
  const Type type = Type::vector(std::move(shape), e);
  const Attr attr = ir::is_float(e) ? Attr::dense_real(type, {value})
                                    : Attr::dense_int(type, {static_cast<int64_t>(value)});
  return Vec(this, emit1(OpCode::kArithConstant, {}, type, {{"value", attr}}, w));
}

// --- operands ---------------------------------------------------------------------------------------

Ref Kernel::argument(std::string name, Elem e, Shape shape, Space space, bool is_result, Where w) {
  for (int64_t d : shape) {
    if (d <= 0) {
      error("shape_mismatch", fmt::format("operand {} has the shape {}", name, ir::shape_str(shape)),
            "every dimension must be at least 1", w);
      shape.assign(shape.size(), 1);
      break;
    }
  }
  const Type type = Type::memref(std::move(shape), e, space);
  auto v = std::make_unique<Value>();
  v->type = type;
  v->name = name;
  v->block = &function_->body();
  Value* raw = v.get();
  (is_result ? outputs_ : inputs_).push_back(std::move(v));
  (is_result ? call_.results : call_.operands).push_back({std::move(name), type});
  return Ref(this, raw);
}

Ref Kernel::input(std::string name, Elem e, Shape shape, Space space, Where w) {
  return argument(std::move(name), e, std::move(shape), space, false, w);
}

Ref Kernel::output(std::string name, Elem e, Shape shape, Space space, Where w) {
  return argument(std::move(name), e, std::move(shape), space, true, w);
}

Ref Kernel::inout(std::string name, Elem e, Shape shape, Space space, Where w) {
  argument(name, e, shape, space, false, w);
  Ref out = argument(std::move(name), e, std::move(shape), space, true, w);
  call_.aliases.emplace_back(static_cast<int>(call_.results.size()) - 1,
                             static_cast<int>(call_.operands.size()) - 1);
  return out;
}

// --- scopes and allocation ----------------------------------------------------------------------------

void Kernel::scope(const std::function<void()>& body, Where w) {
  Op* region = emit(OpCode::kTpuRegion, {}, {}, {}, w, 1);
  in_block(region->body(), [&] {
    body();
    emit(OpCode::kTpuYield, {}, {}, {}, w);
  });
}

Ref Kernel::allocate(Elem e, Shape shape, Space space, Where w) {
  return Ref(this, emit1(OpCode::kMemrefAlloca, {}, Type::memref(std::move(shape), e, space),
                         {segments({0, 0})}, w));
}

Ref Kernel::vmem(Elem e, Shape shape, Where w) {
  return allocate(e, std::move(shape), Space::kVmem, w);
}
Ref Kernel::smem(Elem e, Shape shape, Where w) {
  return allocate(e, std::move(shape), Space::kSmem, w);
}
Sem Kernel::dma_sem(Where w) {
  return Ref(this, emit1(OpCode::kTpuSemAlloc, {},
                         Type::memref({}, Elem::kDmaSemaphore, Space::kSemaphore), {}, w));
}
Sem Kernel::dma_sems(int64_t n, Where w) {
  return Ref(this, emit1(OpCode::kTpuSemAlloc, {},
                         Type::memref({n}, Elem::kDmaSemaphore, Space::kSemaphore), {}, w));
}
Sem Kernel::sem(Where w) {
  return Ref(this, emit1(OpCode::kTpuSemAlloc, {},
                         Type::memref({}, Elem::kSemaphore, Space::kSemaphore), {}, w));
}
Sem Kernel::sems(int64_t n, Where w) {
  return Ref(this, emit1(OpCode::kTpuSemAlloc, {},
                         Type::memref({n}, Elem::kSemaphore, Space::kSemaphore), {}, w));
}

// --- copies and semaphores ----------------------------------------------------------------------------

Copy Kernel::copy(Ref src, Ref dst, Sem done, Where w) {
  emit(OpCode::kTpuEnqueueDma, {src.value(), dst.value(), done.value()}, {},
       {segments({1, 0, 1, 1, 0, 0, 0}),
        {"priority", Attr::i32(0)},
        {"strict_ordering", Attr::boolean(false)}},
       w);
  Copy c;
  c.src_ = src;
  c.dst_ = dst;
  c.done_ = done;
  return c;
}

Copy Kernel::copy_to(Scalar device, Ref src, Ref dst, Sem sent, Sem received, Where w) {
  call_.has_communication = true;
  Copy c;
  c.src_ = src;
  c.dst_ = dst;
  c.done_ = received;
  c.sent_ = sent;
  c.device_ = Scalar(this, as_i32(device, w));
  c.remote_ = true;
  emit(OpCode::kTpuEnqueueDma,
       {src.value(), sent.value(), dst.value(), received.value(), c.device_.value()}, {},
       {segments({1, 1, 1, 1, 1, 0, 0}),
        {"priority", Attr::i32(0)},
        {"strict_ordering", Attr::boolean(false)}},
       w);
  return c;
}

void Copy::wait(Where w) const { src_.kernel()->wait(src_, dst_, done_, w); }

void Copy::wait_sent(Where w) const {
  Kernel& k = *src_.kernel();
  if (!remote_) {
    k.error("invalid_ir", "wait_sent() on a copy that stays on this core",
            "a local copy has one semaphore: call wait()", w);
    return;
  }
  k.emit(OpCode::kTpuWaitDma,
         {src_.value(), sent_.value(), dst_.value(), done_.value(), device_.value()}, {},
         {segments({1, 1, 1, 1, 1, 0, 0}),
          {"priority", Attr::i32(0)},
          {"strict_ordering", Attr::boolean(false)},
          {"wait_target", Attr::boolean(false)}},
         w);
}

void Kernel::wait(Ref src, Ref dst, Sem done, Where w) {
  emit(OpCode::kTpuWaitDma, {src.value(), dst.value(), done.value()}, {},
       {segments({1, 0, 1, 1, 0, 0, 0}),
        {"priority", Attr::i32(0)},
        {"strict_ordering", Attr::boolean(false)},
        {"wait_target", Attr::boolean(true)}},
       w);
}

void Kernel::wait_received(Ref dst, Sem received, Where w) { wait(dst, dst, received, w); }

void Kernel::signal(Sem s, Scalar n, Where w) {
  emit(OpCode::kTpuSemSignal, {s.value(), as_i32(n, w)}, {}, {segments({1, 1, 0, 0, 0})}, w);
}
void Kernel::signal(Sem s, Scalar n, Scalar device, Where w) {
  call_.has_communication = true;
  emit(OpCode::kTpuSemSignal, {s.value(), as_i32(n, w), as_i32(device, w)}, {},
       {segments({1, 1, 1, 0, 0})}, w);
}
void Kernel::wait(Sem s, Scalar n, Where w) {
  emit(OpCode::kTpuSemWait, {s.value(), as_i32(n, w)}, {}, {}, w);
}

Sem Kernel::barrier_sem(Where w) {
  call_.collective_id = 0;
  return Ref(this, emit1(OpCode::kTpuSemBarrier, {},
                         Type::memref({}, Elem::kSemaphore, Space::kSemaphore), {}, w));
}

Scalar Kernel::core(Where w) {
  return Scalar(this, emit1(OpCode::kTpuDeviceId, {}, Type::scalar(Elem::kI32), {}, w));
}

void Kernel::barrier_all(Where w) {
  if (cores() == 1) return;
  const Sem s = barrier_sem(w);
  const Scalar me = core(w);
  for (int d = 1; d < cores(); ++d) signal(s, 1, (me + d) % cores(), w);
  wait(s, cores() - 1, w);
}

// --- control ------------------------------------------------------------------------------------------

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

std::vector<Vec> Kernel::loop(
    Scalar from, Scalar to, std::vector<Vec> init,
    const std::function<std::vector<Vec>(Scalar, std::vector<Vec>)>& body, Where w) {
  std::vector<Value*> inits;
  for (const Vec& v : init) inits.push_back(v.value());
  Op* op = begin_loop(from, to, inits, w);
  in_block(op->body(), [&] {
    std::vector<Vec> carried;
    for (size_t i = 0; i < init.size(); ++i) carried.emplace_back(this, op->body().args[i + 1].get());
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
  if (condition.is_constant()) {
    if (condition.constant()) {
      then();
    } else if (otherwise) {
      otherwise();
    }
    return;
  }
  Op* op = emit(OpCode::kScfIf, {condition.value()}, {}, {}, w, 2);
  for (int i = 0; i < 2; ++i) {
    in_block(op->body(static_cast<size_t>(i)), [&] {
      if (i == 0) then();
      if (i == 1 && otherwise) otherwise();
      emit(OpCode::kScfYield, {}, {}, {}, w);
    });
  }
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
      error("invalid_ir", "the condition of while_ is the constant " + std::to_string(go.constant()),
            "make it depend on the value the loop carries", w);
      go = Scalar(this, before) != 0;
    }
    emit(OpCode::kScfCondition, {go.value(), before}, {}, {}, w);
  });
  in_block(op->body(1), [&] {
    emit(OpCode::kScfYield, {as_i32(body(Scalar(this, after)), w)}, {}, {}, w);
  });
  return Scalar(this, op->result());
}

void Kernel::composite(std::string_view name, const std::vector<Operand>& operands,
                       const std::vector<Param>& params, const std::function<void()>& body, Where w) {
  std::vector<NamedAttr> attrs = {{std::string(ir::kCompositeAttr), Attr::string(std::string(name))}};
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
      error("invalid_ir", fmt::format("operand {} of composite {} is not used by its body",
                                      order.size(), name),
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

// --- finish -------------------------------------------------------------------------------------------

std::expected<ir::Program, Diagnostics> Kernel::finish() {
  GRIDLESS_CHECK(!finished_, "finish() was called twice");
  finished_ = true;
  emit(OpCode::kFuncReturn, {}, {}, {}, Where::current());
  ir::Block& entry = function_->body();
  std::vector<Type> types;
  for (auto* list : {&inputs_, &outputs_}) {
    for (auto& v : *list) {
      v->index = static_cast<int>(entry.args.size());
      types.push_back(v->type);
      entry.args.push_back(std::move(v));
    }
  }
  function_->attrs = {{"dimension_semantics", Attr::array({})},
                      {"function_type", Attr::type(Type::function(types, {}))},
                      {"scalar_prefetch", Attr::i64(0)},
                      {"scratch_operands", Attr::i64(0)},
                      {"sym_name", Attr::string(call_.name)},
                      {"tpu.core_type", Attr::opaque("#tpu.core_type<tc>")}};
  Diagnostics found = std::move(diagnostics_);
  // The verifier would only repeat, less clearly, what a builder mistake caused.
  if (!has_errors(found)) {
    Diagnostics more = ir::verify(module_);
    found.insert(found.end(), more.begin(), more.end());
  }
  if (has_errors(found)) return std::unexpected(std::move(found));
  return ir::Program{std::move(module_), std::move(call_)};
}

}  // namespace gridless::lang
