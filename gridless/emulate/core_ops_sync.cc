// DMAs, semaphores, devices.
#include <fmt/format.h>

#include "gridless/emulate/core_ops.h"

namespace gridless::emulate {

int CoreOps::device(const ir::Op& op, size_t operand) const {
  const int64_t d = integer(operand);
  const auto n = static_cast<int64_t>(machine.cores.size());
  if (d >= 0 && d < n) return static_cast<int>(d);
  fault(op, "out_of_bounds",
        fmt::format("{} on core {}: device {} of {}", op.info().name, core.id, d, n),
        "device ids run from 0 to the number of cores - 1");
}

int64_t CoreOps::amount(const ir::Op& op, size_t operand) const {
  const int64_t n = integer(operand);
  if (n >= 0) return n;
  fault(op, "invalid_ir", fmt::format("{} on core {}: an amount of {}", op.info().name, core.id, n),
        "amounts are zero or more; only the owner's wait takes from a semaphore");
}

Semaphore& CoreOps::semaphore(const ir::Op& op, const View& v, int on_core) {
  Buffer& b =
      machine.cores[static_cast<size_t>(on_core)].buffers[static_cast<size_t>(v.buffer->site)];
  if (!b.is_semaphore() || v.num_elements() != 1)
    fault(op, "shape_mismatch", fmt::format("{}: {} is not one semaphore", op.info().name, v.str()),
          "slice and squeeze the array of semaphores to a single one");
  return b.semaphores[static_cast<size_t>(v.offset)];
}

bool CoreOps::held_count(Event::Kind kind, const ir::Op& op, const View& v, int on_core,
                         int64_t amount) {
  return held([&] {
    return Event{.kind = kind,
                 .op = &op,
                 .semaphore = &semaphore(op, v, on_core),
                 .semaphores = &machine.cores[static_cast<size_t>(on_core)]
                                    .buffers[static_cast<size_t>(v.buffer->site)],
                 .amount = amount};
  });
}

Step CoreOps::wait(const ir::Op& op, const View& ref, int64_t need) {
  Semaphore& s = semaphore(op, ref, core.id);
  if (held_count(Event::Kind::kWait, op, ref, core.id, need)) return Step::kHeld;
  machine.dma.advance(s, need);
  if (s.count >= need) {
    s.count -= need;
    if (machine.recorder) machine.recorder->wait(at(), ref, need);
    return Step::kNext;
  }
  --core.events;
  std::string name = ref.buffer->name;
  if (ref.buffer->semaphores.size() > 1) name += fmt::format("[{}]", ref.offset);
  core.waiting = {&op, &s, std::move(name), need, ref.buffer->site, ref.offset};
  return Step::kBlocked;
}

// Operands: source, [source semaphore], target, target semaphore, [device], [core], [subcore].
Step CoreOps::TpuEnqueueDma(const ir::Op& op) {
  const auto seg = segments(op);
  const bool has_sent = seg[2] > seg[1];
  const bool remote = seg.size() > 5 && seg[5] > seg[4];
  const int to = remote ? device(op, seg[4]) : core.id;
  Transfer t{.src = ref(0), .dst = ref(seg[2]), .op = &op, .core = core.id};
  if (t.src.shape != t.dst.shape || t.src.elem != t.dst.elem) {
    fault(op, "shape_mismatch",
          fmt::format("tpu.enqueue_dma copies {} to {}", t.src.str(), t.dst.str()),
          "source and target need one shape and one format");
  }
  t.dst.buffer =
      &machine.cores[static_cast<size_t>(to)].buffers[static_cast<size_t>(t.dst.buffer->site)];
  check_writable(op, t.dst);
  t.arrived = &semaphore(op, ref(seg[3]), to);
  if (has_sent) t.sent = &semaphore(op, ref(seg[1]), core.id);
  t.bytes = t.src.num_bytes();
  if (machine.recorder || machine.gate) {
    t.arrived_ref = ref(seg[3]);
    if (has_sent) t.sent_ref = ref(seg[1]);
  }
  std::shared_ptr<const Transfer> copy;  // under a gate
  if (machine.gate) copy = std::make_shared<const Transfer>(t);
  if (held([&] { return Event{.kind = Event::Kind::kCopy, .op = &op, .copy = copy}; }))
    return Step::kHeld;
  if (machine.recorder) {
    machine.recorder->copy(at(), t);
    copy_contents(t.src, t.dst);
    machine.dma.run_now(std::move(t));
  } else if (!machine.gate) {
    machine.dma.start(std::move(t));
  } else if (copy->bytes > 0) {
    machine.in_flight.push_back({.copy = std::move(copy),
                                 .launch = core.launch,
                                 .number = core.copies++,
                                 .parts = machine.copy_parts});
  }
  return Step::kNext;
}

// wait_target: the bytes of the target on the target's semaphore; else those of the source on the
// source's. The refs only say how many bytes.
Step CoreOps::TpuWaitDma(const ir::Op& op) {
  const auto at = segments(op);
  const bool has_sent = at[2] > at[1];
  if (op.bool_attr_or("wait_target", true)) return wait(op, ref(at[3]), ref(at[2]).num_bytes());
  return wait(op, ref(has_sent ? at[1] : at[3]), ref(0).num_bytes());
}

Step CoreOps::TpuSemSignal(const ir::Op& op) {
  const auto seg = segments(op);
  const bool remote = seg.size() > 3 && seg[3] > seg[2];
  const int to = remote ? device(op, seg[2]) : core.id;
  const int64_t n = amount(op, 1);
  if (held_count(Event::Kind::kSignal, op, ref(0), to, n)) return Step::kHeld;
  if (!machine.gate || !machine.gate->delivers_signals()) semaphore(op, ref(0), to).count += n;
  if (machine.recorder) machine.recorder->signal(at(), ref(0), to, n);
  return Step::kNext;
}

Step CoreOps::TpuSemWait(const ir::Op& op) { return wait(op, ref(0), amount(op, 1)); }

// A kernel may poll, so the other cores get a turn afterwards.
Step CoreOps::TpuSemRead(const ir::Op& op) {
  Semaphore& s = semaphore(op, ref(0), core.id);
  if (held_count(Event::Kind::kCount, op, ref(0), core.id, 0)) return Step::kHeld;
  machine.dma.advance(s, INT64_MAX);
  if (machine.recorder) machine.recorder->read(at(), ref(0));
  set(RtValue(make_int(Elem::kI32, s.count)));
  return Step::kPoll;
}

}  // namespace gridless::emulate
