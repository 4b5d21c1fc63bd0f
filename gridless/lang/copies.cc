#include <fmt/format.h>

#include "gridless/lang/emit.h"

namespace gridless::lang {

using ir::Attr;
using ir::OpCode;
using ir::Type;
using ir::Value;

namespace {

// The allocation that a chain of slices and squeezes starts from.
const Value* allocation(const Ref& r) {
  const Value* v = r.value();
  while (v->op && ir::info(v->op->code).effect == ir::Effect::kView) v = v->op->operands[0];
  return v;
}

bool on_chip_memory(Space s) {
  return s == Space::kHbm || s == Space::kVmem || s == Space::kSmem || s == Space::kAny;
}

std::vector<ir::NamedAttr> dma_attrs(std::vector<int64_t> sizes, int priority) {
  return {segments(std::move(sizes)),
          {"priority", Attr::i32(priority)},
          {"strict_ordering", Attr::boolean(false)}};
}

}  // namespace

bool Kernel::check_sem(const Sem& s, Elem kind, const char* use, Where w) {
  const Type type = s.value()->type;
  if (type.elem() != kind) {
    const bool other = ir::is_semaphore(type.elem());
    error("invalid_ir", fmt::format("{} on {}", use, type.str()),
          !other ? "this is memory, not a semaphore"
          : kind == Elem::kDmaSemaphore
              ? "copies count bytes: allocate it with dma_sem()"
              : "DMA semaphores count bytes of copies: allocate it with sem()",
          w);
    return false;
  }
  if (type.rank() != 0) {
    error("invalid_ir", fmt::format("{} on an array of semaphores ({})", use, type.str()),
          "take one of them with at(i)", w);
    return false;
  }
  return true;
}

bool Kernel::check_copy(const Ref& src, const Ref& dst, Where w) {
  const Type a = src.value()->type, b = dst.value()->type;
  if (!on_chip_memory(src.space()) || !on_chip_memory(dst.space())) {
    error("invalid_ir", fmt::format("a copy of {} into {}", a.str(), b.str()),
          "copies move data between HBM, VMEM and SMEM", w);
    return false;
  }
  if (a.elem() != b.elem() || a.shape() != b.shape()) {
    error("shape_mismatch", fmt::format("a copy of {} into {}", a.str(), b.str()),
          a.elem() != b.elem()
              ? "the copy engine moves bytes: load, cast() and store to convert"
              : "both sides must have one shape: slice() or reshape() the larger one",
          w);
    return false;
  }
  return true;
}

Copy Kernel::copy(Ref src, Ref dst, Sem done, Where w) {
  return copy(src, dst, done, Priority::kOrdinary, w);
}

Copy Kernel::copy(Ref src, Ref dst, Sem done, Priority p, Where w) {
  if (check_copy(src, dst, w) && check_sem(done, Elem::kDmaSemaphore, "a copy", w)) {
    emit(OpCode::kTpuEnqueueDma, {src.value(), dst.value(), done.value()}, {},
         dma_attrs({1, 0, 1, 1, 0, 0, 0}, p == Priority::kUrgent ? 1 : 0), w);
  }
  Copy c;
  c.kernel_ = this;
  c.src_ = src;
  c.dst_ = dst;
  c.done_ = done;
  c.number_ = started_.size();
  started_.push_back({.where = w, .done = allocation(done)});
  return c;
}

Copy Kernel::copy_to(Scalar device, Ref src, Ref dst, Sem sent, Sem received, Where w) {
  call_.has_communication = true;
  Copy c;
  c.kernel_ = this;
  c.src_ = src;
  c.dst_ = dst;
  c.done_ = received;
  c.sent_ = sent;
  c.device_ = Scalar(this, as_i32(device, w));
  c.remote_ = true;
  c.number_ = started_.size();
  started_.push_back({.where = w, .done = allocation(received), .sent = allocation(sent)});
  if (device.is_constant() && (device.constant() < 0 || device.constant() >= cores())) {
    error("out_of_bounds", fmt::format("a copy to core {}", device.constant()),
          fmt::format("this kernel was written for {} cores: 0 to {}", cores(), cores() - 1), w);
  }
  if (check_copy(src, dst, w) && check_sem(sent, Elem::kDmaSemaphore, "a copy", w) &&
      check_sem(received, Elem::kDmaSemaphore, "a copy", w)) {
    emit(OpCode::kTpuEnqueueDma,
         {src.value(), sent.value(), dst.value(), received.value(), c.device_.value()}, {},
         dma_attrs({1, 1, 1, 1, 1, 0, 0}, 0), w);
  }
  return c;
}

void Copy::wait(Where w) const {
  Kernel& k = *kernel_;
  k.started_[number_].waited = true;
  k.wait(src_, dst_, done_, w);
  k.waited_elsewhere_.pop_back();  // this wait is this copy's own
}

void Copy::wait_sent(Where w) const {
  Kernel& k = *kernel_;
  if (!remote_) {
    k.error("invalid_ir", "wait_sent() on a copy that stays on this core",
            "a local copy has one semaphore: call wait()", w);
    return;
  }
  k.started_[number_].waited_sent = true;
  auto attrs = dma_attrs({1, 1, 1, 1, 1, 0, 0}, 0);
  attrs.emplace_back("wait_target", Attr::boolean(false));
  k.emit(OpCode::kTpuWaitDma,
         {src_.value(), sent_.value(), dst_.value(), done_.value(), device_.value()}, {},
         std::move(attrs), w);
}

void Kernel::wait(Ref src, Ref dst, Sem done, Where w) {
  waited_elsewhere_.push_back(allocation(done));
  if (!check_copy(src, dst, w) || !check_sem(done, Elem::kDmaSemaphore, "a wait for a copy", w))
    return;
  auto attrs = dma_attrs({1, 0, 1, 1, 0, 0, 0}, 0);
  attrs.emplace_back("wait_target", Attr::boolean(true));
  emit(OpCode::kTpuWaitDma, {src.value(), dst.value(), done.value()}, {}, std::move(attrs), w);
}

void Kernel::wait_received(Ref dst, Sem received, Where w) { wait(dst, dst, received, w); }

// --- regular semaphores
// -------------------------------------------------------------------------------

void Kernel::signal(Sem s, Scalar n, Where w) {
  if (!check_sem(s, Elem::kSemaphore, "signal()", w)) return;
  emit(OpCode::kTpuSemSignal, {s.value(), as_i32(n, w)}, {}, {segments({1, 1, 0, 0, 0})}, w);
}

void Kernel::signal(Sem s, Scalar n, Scalar device, Where w) {
  call_.has_communication = true;
  if (!check_sem(s, Elem::kSemaphore, "signal()", w)) return;
  emit(OpCode::kTpuSemSignal, {s.value(), as_i32(n, w), as_i32(device, w)}, {},
       {segments({1, 1, 1, 0, 0})}, w);
}

void Kernel::wait(Sem s, Scalar n, Where w) {
  if (!check_sem(s, Elem::kSemaphore, "wait()", w)) return;
  emit(OpCode::kTpuSemWait, {s.value(), as_i32(n, w)}, {}, {}, w);
}

Scalar Kernel::read(Sem s, Where w) {
  if (!ir::is_semaphore(s.elem()) || !s.shape().empty()) {
    check_sem(s, Elem::kSemaphore, "read()", w);
    return 0;
  }
  return Scalar(this, emit1(OpCode::kTpuSemRead, {s.value()}, Type::scalar(Elem::kI32), {}, w));
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
  for (int d = 1; d < cores(); ++d) {
    signal(s, 1, (me + ScalarArg(d, w)) % ScalarArg(cores(), w), w);
  }
  wait(s, cores() - 1, w);
}

}  // namespace gridless::lang
