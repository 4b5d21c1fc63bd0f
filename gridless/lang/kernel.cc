#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gridless/ir/verifier.h"
#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::Attr;
using ir::NamedAttr;
using ir::Op;
using ir::OpCode;
using ir::Type;
using ir::Value;

Kernel::Kernel(std::string name, int cores, Where w) {
  call_.name = std::move(name);
  call_.cores = cores;
  function_ = ir::append_op(module_.body(), OpCode::kFuncFunc, {}, {}, {}, w, 1);
  block_ = &function_->body();
  open_ = {block_};
}

Kernel::~Kernel() = default;

void Kernel::error(std::string kind, std::string message, std::string hint, Where w) {
  diagnostics_.push_back({.kind = std::move(kind),
                          .message = std::move(message),
                          .where = w,
                          .notes = {},
                          .hint = std::move(hint)});
}

// --- emission and its checks
// --------------------------------------------------------------------------

namespace {

const ir::Block* home(const Value& v) { return v.op ? v.op->parent : v.block; }

// The function that a block belongs to.
const Op* function_of(const ir::Block* b) {
  while (b && b->parent && b->parent->parent) {
    const Op* op = b->parent->parent;
    if (op->code == OpCode::kFuncFunc) return op;
    b = op->parent;
  }
  return nullptr;
}

const char* noun(const Value& v) { return v.type.is_memref() ? "ref" : "value"; }

}  // namespace

void Kernel::check_visible(const std::vector<Value*>& operands, Where w) {
  for (const Value* v : operands) {
    const ir::Block* block = home(*v);
    if (std::ranges::find(open_, block) != open_.end()) continue;
    const std::string made = v->op ? v->op->loc.str() : "unknown location";
    if (function_of(block) != function_) {
      error("invalid_ir", fmt::format("a {} of another kernel ({})", noun(*v), v->type.str()),
            "refs, vectors and scalars belong to the kernel that made them", w);
    } else {
      error("use_after_scope",
            fmt::format("{} {} is used after its scope has ended", noun(*v), v->type.str()),
            v->type.is_memref() ? "allocate it in a scope that surrounds both places"
                                : "a value lives as long as the scope, loop body or branch that "
                                  "computed it: carry it "
                                  "out (loop with an initial value, choose()) or store it in a ref",
            w);
    }
    diagnostics_.back().notes.push_back("made at " + made);
  }
}

Op* Kernel::emit(OpCode code, std::vector<Value*> operands, std::vector<Type> results,
                 std::vector<NamedAttr> attrs, Where w, int regions) {
  if (finished_) {
    error("invalid_ir", "an operation after finish()",
          "finish() closes the program: build everything before it", w);
    diagnostics_.back().notes.push_back("finished at " + finished_->str());
  } else {
    check_visible(operands, w);
  }
  return ir::append_op(*block_, code, std::move(operands), std::move(results), std::move(attrs), w,
                       regions);
}

Value* Kernel::emit1(OpCode code, std::vector<Value*> operands, Type result,
                     std::vector<NamedAttr> attrs, Where w) {
  return emit(code, std::move(operands), {result}, std::move(attrs), w)->result();
}

void Kernel::in_block(ir::Block& block, const std::function<void()>& body) {
  ir::Block* saved = std::exchange(block_, &block);
  open_.push_back(&block);
  body();
  open_.pop_back();
  block_ = saved;
}

// --- scalars and constants
// ----------------------------------------------------------------------------

Value* Kernel::as_elem(Scalar s, Elem e, Where w) {
  const Type type = Type::scalar(e);
  if (s.is_constant()) {
    const bool whole = ir::is_float(e) || s.real() == static_cast<double>(s.constant());
    if (!whole) {
      error("shape_mismatch",
            fmt::format("the number {} where an {} is needed", s.real(), spelling(e)),
            "write a whole number", w);
    }
    const Attr value =
        ir::is_float(e) ? Attr::real(s.real(), type) : Attr::integer(s.constant(), type);
    return emit1(OpCode::kArithConstant, {}, type, {{"value", value}}, w);
  }
  if (s.elem() == e) return s.value();
  if (s.elem() == Elem::kIndex || e == Elem::kIndex) {
    if (!ir::is_float(s.elem()) && !ir::is_float(e)) {
      Value* v = s.elem() == Elem::kI1 ? as_elem(s, Elem::kI32, w) : s.value();
      return emit1(OpCode::kArithIndexCast, {v}, type, {}, w);
    }
  }
  if (s.elem() == Elem::kI1 && e == Elem::kI32) {
    return emit1(OpCode::kArithExtui, {s.value()}, type, {}, w);
  }
  error("shape_mismatch",
        fmt::format("a scalar of {} where an {} is needed", spelling(s.elem()), spelling(e)),
        fmt::format("cast() it to {}", spelling(e)), w);
  return as_elem(Scalar(0), e, w);
}

Value* Kernel::as_i32(Scalar s, Where w) { return as_elem(s, Elem::kI32, w); }
Value* Kernel::as_index(Scalar s, Where w) { return as_elem(s, Elem::kIndex, w); }

Vec Kernel::constant(Shape shape, Elem e, double value, Where w) {
  const Type type = Type::vector(std::move(shape), e);
  const Attr attr = ir::is_float(e) ? Attr::dense_real(type, {value})
                                    : Attr::dense_int(type, {static_cast<int64_t>(value)});
  return Vec(this, emit1(OpCode::kArithConstant, {}, type, {{"value", attr}}, w));
}

// --- operands
// ---------------------------------------------------------------------------------------

Ref Kernel::argument(std::string name, Elem e, Shape shape, Space space, bool is_result, Where w) {
  for (int64_t d : shape) {
    if (d <= 0) {
      error("shape_mismatch",
            fmt::format("operand {} has the shape {}", name, ir::shape_str(shape)),
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
  if (is_result) output_places_.emplace_back(w);
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

// --- scopes and allocation
// ----------------------------------------------------------------------------

void Kernel::scope(const std::function<void()>& body, Where w) {
  Op* region = emit(OpCode::kTpuRegion, {}, {}, {}, w, 1);
  in_block(region->body(), [&] {
    body();
    emit(OpCode::kTpuYield, {}, {}, {}, w);
  });
}

Ref Kernel::allocate(Elem e, Shape shape, Space space, Where w) {
  for (int64_t& d : shape) {
    if (d > 0) continue;
    error("shape_mismatch", fmt::format("an allocation of shape {}", ir::shape_str(shape)),
          "every dimension must be at least 1", w);
    d = 1;
  }
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
Sems Kernel::dma_sems(int64_t n, Where w) {
  return Ref(this, emit1(OpCode::kTpuSemAlloc, {},
                         Type::memref({n}, Elem::kDmaSemaphore, Space::kSemaphore), {}, w));
}
Sem Kernel::sem(Where w) {
  return Ref(this, emit1(OpCode::kTpuSemAlloc, {},
                         Type::memref({}, Elem::kSemaphore, Space::kSemaphore), {}, w));
}
Sems Kernel::sems(int64_t n, Where w) {
  return Ref(this, emit1(OpCode::kTpuSemAlloc, {},
                         Type::memref({n}, Elem::kSemaphore, Space::kSemaphore), {}, w));
}

// --- finish
// -------------------------------------------------------------------------------------------

void Kernel::warn_about_copies() {
  const auto elsewhere = [&](const Value* sem) {
    return std::ranges::find(waited_elsewhere_, sem) != waited_elsewhere_.end();
  };
  const auto warn = [&](const Started& c, const char* what, const char* hint) {
    error("dma_in_flight_at_end", what, hint, c.where);
    diagnostics_.back().severity = Diagnostic::Severity::kWarning;
  };
  for (const Started& c : started_) {
    if (!c.waited && !elsewhere(c.done)) {
      warn(c, "nothing waits for the bytes of this copy",
           "call wait() on the Copy, or Kernel::wait(src, dst, done) where the bytes are needed");
    }
    if (c.sent && !c.waited_sent && !elsewhere(c.sent)) {
      warn(c, "nothing waits until this remote copy has left its source",
           "call wait_sent() on the Copy before the source is written again or its scope ends");
    }
  }
}

void Kernel::check_mxu_use() {
  const Op* by_hand = nullptr;
  const Op* whole = nullptr;
  ir::walk(*function_, [&](const Op& op) {
    if (!by_hand && op.info().effect == ir::Effect::kMxuState) by_hand = &op;
    if (!whole && op.code == OpCode::kTpuMatmul) whole = &op;
  });
  if (!by_hand || !whole) return;
  diagnostics_.push_back(
      {.kind = "invalid_ir",
       .message = "mxu_* operations and dot() in one kernel",
       .where = by_hand->loc,
       .notes = {"dot() at " + whole->loc.str()},
       .hint = "libtpu schedules the matrix units itself or leaves them to the kernel: "
               "use one of the two"});
}

void Kernel::warn_about_outputs() {
  std::vector<const Value*> used;
  ir::walk(*function_,
           [&](const Op& op) { used.insert(used.end(), op.operands.begin(), op.operands.end()); });
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (std::ranges::find(used, outputs_[i].get()) != used.end()) continue;
    error("uninitialised_read", fmt::format("output {} is never written", outputs_[i]->name),
          "copy() into it before the kernel ends, or drop it", output_places_[i]);
    diagnostics_.back().severity = Diagnostic::Severity::kWarning;
  }
}

std::expected<ir::Program, Diagnostics> Kernel::finish(Where w) {
  if (finished_) {
    error("invalid_ir", "finish() was called twice", "a kernel gives one program", w);
    diagnostics_.back().notes.push_back("first at " + finished_->str());
    return std::unexpected(std::move(diagnostics_));
  }
  emit(OpCode::kFuncReturn, {}, {}, {}, w);
  check_mxu_use();
  warn_about_copies();
  warn_about_outputs();
  finished_ = w;
  block_ = &afterlife_.body();
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
  Diagnostics found = std::exchange(diagnostics_, {});
  // The verifier would only repeat, less clearly, what a builder mistake caused.
  if (!has_errors(found)) {
    Diagnostics more = ir::verify(module_);
    found.insert(found.end(), more.begin(), more.end());
  }
  if (has_errors(found)) return std::unexpected(std::move(found));
  return ir::Program{std::move(module_), std::move(call_), std::move(found)};
}

}  // namespace gridless::lang
