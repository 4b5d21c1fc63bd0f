#include "gridless/emulate/explore/reduction.h"

#include <algorithm>

namespace gridless::emulate {

Reduction::Reduction(const Stepper& stepper, const Kernel& kernel)
    : kernel_(kernel), remote_(kernel.sites.size(), false) {
  ir::walk(*kernel.function, [&](const ir::Op& op) {
    if (op.code == ir::OpCode::kTpuSemRead) reads_counts_ = true;
    if (op.code == ir::OpCode::kTpuEnqueueDma && !op.segment(4).empty()) {
      mark(op.operands[op.segment(1).empty() ? 1 : 2]);
      mark(op.segment(3)[0]);
    }
    if (op.code == ir::OpCode::kTpuSemSignal && !op.segment(2).empty()) mark(op.operands[0]);
  });
  // Aliased arguments share memory.
  const auto& buffers = stepper.machine().cores[0].buffers;
  for (const Buffer& a : buffers)
    for (const Buffer& b : buffers)
      if (remote_[static_cast<size_t>(a.site)] && !a.data.empty() && a.data.data() == b.data.data())
        remote_[static_cast<size_t>(b.site)] = true;
  for (size_t s = 0; s < remote_.size(); ++s) {
    const int site = static_cast<int>(s);
    if (!remote_[s] || site == kernel.barrier_site()) continue;
    any_remote_ = true;
    if (site > kernel.barrier_site()) scoped_remote_ = true;
  }
}

void Reduction::mark(const ir::Value* ref) {
  while (ref->op && ref->op->info().effect == ir::Effect::kView) ref = ref->op->operands[0];
  const auto& args = kernel_.function->body().args;
  for (size_t k = 0; k < args.size(); ++k)
    if (args[k].get() == ref) {
      remote_[k] = true;
      return;
    }
  if (ref->op && ref->op->code == ir::OpCode::kTpuSemBarrier) {
    remote_[static_cast<size_t>(kernel_.barrier_site())] = true;
    return;
  }
  for (const Instr& in : kernel_.body.code)
    if (in.op && in.op == ref->op && in.kind == Instr::Kind::kOp &&
        ref->op->info().effect == ir::Effect::kAlloc) {
      remote_[static_cast<size_t>(in.target)] = true;
      return;
    }
  remote_.assign(remote_.size(), true);
}

std::optional<int> Reduction::one_core(const Stepper& stepper, const Watch& watch) const {
  for (const Core& core : stepper.machine().cores)
    if (stepper.can_go_on(core.id) && alone(core, *stepper.next(core.id), watch)) return core.id;
  return std::nullopt;
}

bool Reduction::alone(const Core& core, const Event& event, const Watch& watch) const {
  switch (event.kind) {
    case Event::Kind::kEnter:
      return !any_remote_;
    case Event::Kind::kWait:
      return true;
    case Event::Kind::kSignal: {
      if (reads_counts_) return false;
      const Buffer& to = *event.semaphores;
      if (to.core == core.id || to.site == kernel_.barrier_site()) return true;
      return to.site < kernel_.barrier_site() &&
             watch.lives[static_cast<size_t>(to.core)].entered > core.launch;
    }
    case Event::Kind::kCount:
      return false;
    case Event::Kind::kLoad:
    case Event::Kind::kStore: {
      if (remote_memory(*event.buffer)) return false;
      const bool write = event.kind == Event::Kind::kStore;
      const Elements e(*event.buffer, event.region);
      return std::ranges::none_of(watch.flights, [&](const Flight& f) {
        return f.target.overlaps(e) || (write && !f.is_read && f.source.overlaps(e));
      });
    }
    case Event::Kind::kCopy:
      return copy_alone(event, watch);
    case Event::Kind::kScopeEnd:
      return !scoped_remote_ && quiet(core, event.first_site, event.last_site, watch);
    case Event::Kind::kReturn:
      return !any_remote_ && quiet(core, 0, static_cast<int>(kernel_.sites.size()), watch);
    case Event::Kind::kAllocate:
      break;
  }
  return false;
}

bool Reduction::copy_alone(const Event& event, const Watch& watch) const {
  const Transfer& t = *event.copy;
  if (t.bytes == 0) return true;
  if (t.dst.buffer->core != t.core) return false;
  if (remote_memory(*t.src.buffer) || remote_memory(*t.dst.buffer)) return false;
  if (reads_counts_) return false;
  const Elements source(*t.src.buffer, region_of(t.src)), target(*t.dst.buffer, region_of(t.dst));
  return std::ranges::none_of(watch.flights, [&](const Flight& f) {
    return f.target.overlaps(source) || f.target.overlaps(target) ||
           (!f.is_read && f.source.overlaps(target));
  });
}

bool Reduction::quiet(const Core& core, int first, int last, const Watch& watch) const {
  return std::ranges::none_of(watch.flights, [&](const Flight& f) {
    const Transfer& t = *f.copy;
    const auto inside = [&](int on_core, int site) {
      return on_core == core.id && site >= first && site < last;
    };
    return inside(t.core, t.src.buffer->site) || inside(t.dst.buffer->core, t.dst.buffer->site) ||
           inside(t.dst.buffer->core, t.arrived_ref.buffer->site) ||
           (t.sent && inside(t.core, t.sent_ref.buffer->site));
  });
}

std::vector<size_t> Reduction::own_copies(const Stepper& stepper, const Watch& watch) const {
  for (const Core& core : stepper.machine().cores) {
    const Event* e = stepper.next(core.id);
    if (!e || e->kind != Event::Kind::kWait || stepper.can_go_on(core.id)) continue;
    if (remote_memory(*e->semaphores)) continue;
    std::vector<size_t> list;
    bool closed = true;
    for (size_t k = 0; k < watch.flights.size(); ++k) {
      const Flight& f = watch.flights[k];
      const Transfer& t = *f.copy;
      if (t.core != core.id) continue;
      const bool within = t.dst.buffer->core == core.id;
      if (!f.is_read && remote_memory(*t.src.buffer)) closed = false;
      if (within && remote_memory(*t.dst.buffer)) closed = false;
      if (within || !f.is_read) list.push_back(k);
    }
    if (closed && !list.empty()) return list;
  }
  return {};
}

}  // namespace gridless::emulate
