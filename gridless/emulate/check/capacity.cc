#include "gridless/emulate/check/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gridless/base/integers.h"
#include "gridless/chips/tpu7x.h"
#include "gridless/emulate/codec.h"

namespace gridless::emulate {
namespace {

int64_t padded_bytes(Type type) {
  Shape shape = type.shape();
  for (int64_t& d : shape)
    if (d < 0) d = 0;
  if (shape.empty()) return 4;
  const int bits = storage_bits(type.elem());
  if (type.space() == ir::Space::kSmem)  // one word per element, rows of 128 words
    return round_up(std::max<int64_t>(type.num_elements(), 0) * 4, 4);
  shape.back() = round_up(shape.back(), chips::kTpu7x.lanes);
  if (shape.size() > 1) {
    int64_t& rows = shape[shape.size() - 2];
    const int64_t tile = int64_t{chips::kTpu7x.sublanes} * 32 / bits;
    rows = rows >= tile ? round_up(rows, tile)
                        : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
  }
  int64_t elements = 1;
  for (int64_t d : shape) elements *= d;
  return storage_bytes(type.elem(), elements);
}

void count(Usage& u, Type type, int64_t times) {
  if (!type.is_memref()) return;
  if (ir::is_semaphore(type.elem())) {
    u.semaphores += times * type.num_elements();
  } else if (type.space() == ir::Space::kVmem) {
    u.vmem_bytes += times * padded_bytes(type);
  } else if (type.space() == ir::Space::kSmem) {
    u.smem_bytes += times * padded_bytes(type);
  }
}

}  // namespace

Usage usage(const Kernel& kernel) {
  Usage now;
  for (const Argument& arg : kernel.arguments) count(now, arg.type, arg.is_window ? 2 : 1);
  Usage peak = now;
  // Scopes nest, so the order of the code is the order of allocations.
  for (const Instr& in : kernel.body.code) {
    if (in.kind == Instr::Kind::kOp && in.op->info().effect == ir::Effect::kAlloc &&
        in.op->code != ir::OpCode::kTpuSemBarrier) {
      count(now, kernel.sites[static_cast<size_t>(in.target)].type, 1);
    } else if (in.kind == Instr::Kind::kScopeEnd) {
      const auto range = kernel.body.operands(in);
      for (int32_t s = range[0]; s < range[1]; ++s)
        count(now, kernel.sites[static_cast<size_t>(s)].type, -1);
    }
    const auto raise = [&](int64_t value, int64_t& most, const ir::Op*& op) {
      if (value <= most) return;
      most = value;
      op = in.op;
    };
    raise(now.vmem_bytes, peak.vmem_bytes, peak.vmem_op);
    raise(now.smem_bytes, peak.smem_bytes, peak.smem_op);
    raise(now.semaphores, peak.semaphores, peak.semaphore_op);
  }
  return peak;
}

bool far_beyond_chip(const Usage& u) {
  constexpr int64_t kTimes = 16;
  const chips::Tpu7x& chip = chips::kTpu7x;
  return u.vmem_bytes > kTimes * chip.vmem_usable_bytes ||
         u.smem_bytes > kTimes * chip.smem_usable_bytes ||
         u.semaphores > kTimes * chip.semaphores_usable;
}

Diagnostics check_capacity(const Kernel& kernel, const Usage& u) {
  const chips::Tpu7x& chip = chips::kTpu7x;
  Diagnostics out;
  const auto report = [&](const char* what, int64_t need, int64_t have, const ir::Op* op,
                          const char* hint) {
    if (need <= have) return;
    out.push_back({.kind = "capacity",
                   .message = fmt::format("the kernel needs {} {} of one core, which has {}", need,
                                          what, have),
                   .where = op ? op->loc : kernel.function->loc,
                   .notes = {},
                   .hint = hint});
  };
  report("bytes of VMEM", u.vmem_bytes, chip.vmem_usable_bytes, u.vmem_op,
         "end scopes earlier, or work on smaller tiles");
  report("bytes of SMEM", u.smem_bytes, chip.smem_usable_bytes, u.smem_op,
         "keep large tables in HBM");
  report("semaphores", u.semaphores, chip.semaphores_usable, u.semaphore_op,
         "reuse semaphores between phases");
  return out;
}

}  // namespace gridless::emulate
