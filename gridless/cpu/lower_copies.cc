#include <cstring>

#include "gridless/cpu/lowering.h"

namespace gridless::cpu {

namespace {

std::atomic_ref<int64_t> counter(const View& v, const emulate::Machine& m, int core) {
  emulate::Buffer& b = const_cast<emulate::Buffer&>(
      m.cores[static_cast<size_t>(core)].buffers[static_cast<size_t>(v.buffer->site)]);
  return std::atomic_ref<int64_t>(b.semaphores[static_cast<size_t>(v.offset)].count);
}

}  // namespace

Lowering::DmaOperands Lowering::dma_operands(const Op& op) {
  const auto at = emulate::segments(op);
  const auto get = [&](size_t i) {
    return at.size() > i + 1 && at[i + 1] > at[i] ? op.operands[at[i]] : nullptr;
  };
  return {get(0), get(1), get(2), get(3), get(4)};
}

Lowering::Device Lowering::device_of(const Op& op, const Value* v) {
  if (!v) return {.core = core_.id};
  if (!known(v)) return {.slot = slot(v), .op = &op};
  return {.core = Device::existing(op, integer(v), machine_)};
}

int Lowering::Device::existing(const Op& op, int64_t d, const emulate::Machine& machine) {
  if (d < 0 || d >= static_cast<int64_t>(machine.cores.size())) {
    emulate::fault(op, "out_of_bounds", "device " + std::to_string(d) + " does not exist",
                   "device ids run from 0 to the number of cores - 1");
  }
  return static_cast<int>(d);
}

void Lowering::add(CoreRun& run, const View& semaphore, int core, int64_t n) {
  counter(semaphore, *run.machine, core).fetch_add(n, std::memory_order_seq_cst);
  if (core != run.core->id) (*run.notify)(core);
}

void Lowering::start_copy(const Op& op) {
  const DmaOperands o = dma_operands(op);
  const Device device = device_of(op, o.device);
  const Place done = place(o.done);
  const Place sent = o.sent ? place(o.sent) : Place{};
  const bool has_sent = o.sent != nullptr;
  for (const Value* v : {o.src, o.dst}) {
    if (!known(v)) materialise_behind(v);
  }
  Place src = place(o.src);
  const Place dst = place(o.dst);
  if (src.slot < 0) src.view = resolve(src.view);
  const bool local = !o.device;
  const int64_t bytes = emulate::storage_bytes(o.dst->type.elem(), o.dst->type.num_elements());

  if (local && src.slot < 0 && dst.slot < 0) {
    const bool viewable = dynamic_ == 0 && src.view.buffer->read_only && is_linear(src.view) &&
                          is_linear(dst.view) && o.dst->type.space() == ir::Space::kVmem &&
                          !remote_targets_.contains(dst.view.buffer->site);
    // Copies that were put off for the same place: one that is overwritten whole need never be
    // made.
    for (const AliasMap::Alias& a : aliases_.take_overlapping(dst.view)) {
      if (!is_linear(dst.view) || !AliasMap::covers(dst.view, a)) copy_now(a.source, a.target);
    }
    if (viewable) {
      aliases_.add(src.view, dst.view);
      ++tape_.views;
    } else {
      copy_now(src.view, dst.view);
    }
    emit([done, bytes](CoreRun& run) {
      add(run, done.get(run), run.core->id, bytes);
      return Flow::kNext;
    });
    return;
  }
  if (dst.slot < 0) materialise(dst.view);
  ++tape_.copies;
  emit([=](CoreRun& run) {
    const int to = device.get(run);
    View target = dst.get(run);
    target.buffer = &run.machine->cores[static_cast<size_t>(to)]
                         .buffers[static_cast<size_t>(target.buffer->site)];
    const View& source = src.get(run);
    if (is_linear(source) && is_linear(target)) {
      std::memmove(bytes_of(target), bytes_of(source), static_cast<size_t>(target.num_bytes()));
    } else {
      emulate::copy_view(source, target);
    }
    const int64_t n = target.num_bytes();
    if (has_sent) add(run, sent.get(run), run.core->id, n);
    add(run, done.get(run), to, n);
    return Flow::kNext;
  });
}

void Lowering::wait_for(const Op& op, Place semaphore, Place amount_of, int32_t amount_slot,
                        int64_t amount) {
  emit([=, &op](CoreRun& run) {
    int64_t need = amount;
    if (amount_slot >= 0)
      need = emulate::scalar(run.frame.slots[static_cast<size_t>(amount_slot)]).i;
    if (amount_of.slot >= 0) need = amount_of.get(run).num_bytes();
    auto count = counter(semaphore.get(run), *run.machine, run.core->id);
    const int64_t have = count.load(std::memory_order_acquire);
    if (have < need) {
      run.blocked = {&op, have, need};
      return Flow::kBlocked;
    }
    count.fetch_sub(need, std::memory_order_relaxed);
    return Flow::kNext;
  });
}

void Lowering::wait_copy(const Op& op) {
  const DmaOperands o = dma_operands(op);
  const bool target = op.bool_attr_or("wait_target", true);
  const Value* counted = target ? o.dst : o.src;
  const Place ref = place(counted);
  wait_for(op, place(target || !o.sent ? o.done : o.sent), ref, -1,
           ref.slot < 0 ? ref.view.num_bytes() : 0);
}

void Lowering::wait_semaphore(const Op& op) {
  const Value* n = op.operands[1];
  wait_for(op, place(op.operands[0]), {}, known(n) ? -1 : slot(n), known(n) ? integer(n) : 0);
}

void Lowering::signal(const Op& op) {
  const auto at = emulate::segments(op);
  const Value* n = op.operands[at[1]];
  const Device device =
      device_of(op, at.size() > 3 && at[3] > at[2] ? op.operands[at[2]] : nullptr);
  const Place semaphore = place(op.operands[0]);
  const int32_t amount = known(n) ? -1 : slot(n);
  const int64_t fixed = known(n) ? integer(n) : 0;
  emit([=](CoreRun& run) {
    const int64_t k =
        amount < 0 ? fixed : emulate::scalar(run.frame.slots[static_cast<size_t>(amount)]).i;
    add(run, semaphore.get(run), device.get(run), k);
    return Flow::kNext;
  });
}

void Lowering::read_semaphore(const Op& op) {
  const Place semaphore = place(op.operands[0]);
  const int32_t out = define_unknown(op.result());
  emit([=](CoreRun& run) {
    const int64_t n =
        counter(semaphore.get(run), *run.machine, run.core->id).load(std::memory_order_acquire);
    run.frame.slots[static_cast<size_t>(out)] = emulate::make_int(ir::Elem::kI32, n);
    return Flow::kNext;
  });
}

}  // namespace gridless::cpu
