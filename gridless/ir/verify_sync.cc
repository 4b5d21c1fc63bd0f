// DMAs, semaphores, and the scalars that steer them.
#include "gridless/ir/verify_ops.h"

namespace gridless::ir {

bool OpVerifier::semaphore(const Op& op, const Value* v, std::string_view what, bool dma_only,
                           bool regular_only) {
  const Type t = v->type;
  if (!expect(op, t.is_memref() && is_semaphore(t.elem()) && t.space() == Space::kSemaphore,
              "invalid_ir",
              [&] { return fmt::format("{} must be a semaphore, got {}", what, t.str()); }))
    return false;
  if (!expect(
          op, t.rank() == 0, "shape_mismatch",
          [&] { return fmt::format("{} must be one semaphore, got {}", what, t.str()); },
          "slice the array and squeeze it"))
    return false;
  const bool dma = t.elem() == Elem::kDmaSemaphore;
  return expect(
      op, !(dma_only && !dma) && !(regular_only && dma), "invalid_ir",
      [&] {
        return fmt::format("{} must be a {} semaphore, got {}", what, dma_only ? "DMA" : "regular",
                           t.str());
      },
      dma_only ? "allocate !tpu.dma_semaphore" : "a DMA semaphore is waited for with tpu.wait_dma");
}

bool OpVerifier::dma_refs(const Op& op, const Value* source, const Value* target) {
  if (!ref_operand(op, source, "the source") || !ref_operand(op, target, "the target"))
    return false;
  const Type s = source->type, t = target->type;
  for (Type x : {s, t}) {
    if (!expect(op, !is_semaphore(x.elem()) && x.space() != Space::kNone, "invalid_ir",
                [&] { return fmt::format("{} cannot be copied", x.str()); }))
      return false;
  }
  return expect(
             op, s.shape() == t.shape(), "shape_mismatch",
             [&] {
               return fmt::format("DMA source and target shape mismatch: {} and {}", s.str(),
                                  t.str());
             },
             "slice the larger one") &&
         expect(
             op, s.elem() == t.elem(), "shape_mismatch",
             [&] {
               return fmt::format("DMA source and target element type mismatch: {} and {}", s.str(),
                                  t.str());
             },
             "a DMA moves bytes: load, convert and store to change the type");
}

void OpVerifier::TpuEnqueueDma(const Op& op) {
  const Value* source = op.operands[0];
  const std::vector<Value*> source_sem = op.segment(1), device = op.segment(4),
                            core = op.segment(5);
  dma_refs(op, source, op.segment(2)[0]);
  semaphore(op, op.segment(3)[0], "the target's semaphore", true, false);
  for (const Value* v : source_sem) semaphore(op, v, "the source's semaphore", true, false);
  for (const Value* v : device) i32_operand(op, v, "device_id");
  for (const Value* v : core) i32_operand(op, v, "core_id");
  expect(
      op, source_sem.empty() == device.empty(), "invalid_ir",
      device.empty() ? "a source semaphore without a device_id"
                     : "a device_id without a source semaphore",
      "a remote copy signals both ends: give it a send and a receive semaphore; a local copy has "
      "one");
  if (const auto p = integer(op, "priority")) {
    expect(
        op, *p == 0 || (*p == 1 && device.empty()), "invalid_ir",
        [&] {
          return fmt::format("priority {} of a {} copy", *p, device.empty() ? "local" : "remote");
        },
        "0, or 1 for a local copy");
  }
}

void OpVerifier::TpuWaitDma(const Op& op) {
  const Attr* target = op.find("wait_target");
  if (!expect(op, target->kind() == AttrKind::kBool, "invalid_ir", "wait_target must be a bool"))
    return;
  const bool for_target = (*target)->ints[0] != 0;
  const std::vector<Value*> sem = op.segment(for_target ? 3 : 1);
  dma_refs(op, op.operands[0], op.segment(2)[0]);
  expect(op, sem.size() == 1, "invalid_ir",
         for_target ? "no target semaphore to wait for" : "no source semaphore to wait for",
         "wait_target = true waits for the landing, false for the source having been read");
  for (size_t s : {size_t{1}, size_t{3}})
    for (const Value* v : op.segment(s)) semaphore(op, v, "the semaphore", true, false);
  for (size_t s : {size_t{4}, size_t{5}})
    for (const Value* v : op.segment(s)) i32_operand(op, v, "an id");
}

void OpVerifier::TpuSemSignal(const Op& op) {
  semaphore(op, op.operands[0], "the semaphore", false, false);
  i32_operand(op, op.operands[1], "the amount");
  for (size_t s : {size_t{2}, size_t{3}})
    for (const Value* v : op.segment(s)) i32_operand(op, v, "an id");
}

void OpVerifier::TpuSemWait(const Op& op) {
  semaphore(op, op.operands[0], "the semaphore", false, true);
  i32_operand(op, op.operands[1], "the amount");
}

void OpVerifier::TpuSemRead(const Op& op) {
  semaphore(op, op.operands[0], "the semaphore", false, false);
  i32_operand(op, op.result(), "the result");
}

void OpVerifier::TpuSemBarrier(const Op& op) {
  semaphore(op, op.result(), "the result", false, true);
}

void OpVerifier::TpuDeviceId(const Op& op) { i32_operand(op, op.result(), "the result"); }

void OpVerifier::TpuDelay(const Op& op) { i32_operand(op, op.operands[0], "the delay"); }

void OpVerifier::TpuIterationBound(const Op& op) {
  integer(op, "dim");
  i32_operand(op, op.result(), "the result");
}

void OpVerifier::TpuPrngSetSeed32(const Op& op) {
  for (const Value* v : op.operands) i32_operand(op, v, "a seed");
}

void OpVerifier::TpuPrngRandomBits(const Op& op) {
  const Type t = op.result()->type;
  expect(op, t.is_vector() && t.elem() == Elem::kI32, "invalid_ir",
         [&] { return fmt::format("gives an i32 vector, not {}", t.str()); });
}

}  // namespace gridless::ir
