#include <cstring>

#include "gridless/cpu/lowering.h"

namespace gridless::cpu {

std::byte* bytes_of(const View& v) {
  return v.buffer->data.data() + v.offset * emulate::storage_bits(v.elem) / 8;
}

bool is_linear(const View& v) { return v.plain() && v.contiguous(); }

const Value* base_of(const Value* ref) {
  while (ref->op && ref->op->info().effect == ir::Effect::kView) ref = ref->op->operands[0];
  return ref;
}

Lowering::Lowering(const emulate::Kernel& kernel, emulate::Machine& machine, int core,
                   const KernelTable& kernels, const LowerOptions& options)
    : kernel_(kernel),
      machine_(machine),
      core_(machine.cores[static_cast<size_t>(core)]),
      kernels_(kernels),
      options_(options),
      frame_(tape_.program),
      ops_{machine, core_, frame_} {
  for (const Instr& in : kernel.body.code) {
    if (in.op && (in.op->code == OpCode::kMemrefAlloca || in.op->code == OpCode::kTpuSemAlloc)) {
      sites_[in.op] = in.target;
    }
  }
  ir::walk(*kernel.function, [&](const Op& op) {
    used_.insert(op.operands.begin(), op.operands.end());
    if (op.code != OpCode::kTpuEnqueueDma || !dma_operands(op).device) return;
    const Value* base = base_of(dma_operands(op).dst);
    const auto it = base->op ? sites_.find(base->op) : sites_.end();
    remote_targets_.insert(it != sites_.end() ? it->second : base->index);
  });
}

Tape Lowering::run() {
  const ir::Block& body = kernel_.function->body();
  for (size_t i = 0; i < body.args.size(); ++i) {
    define_known(body.args[i].get(), ref(emulate::whole(core_.buffers[i])));
  }
  block(body);
  tape_.slots = std::move(frame_.slots);
  return std::move(tape_);
}

int32_t Lowering::new_slot(RtValue value, bool known) {
  frame_.slots.push_back(std::move(value));
  known_.push_back(known);
  return static_cast<int32_t>(frame_.slots.size()) - 1;
}

int32_t Lowering::slot(const Value* v) const {
  const auto it = slot_of_.find(v);
  GRIDLESS_CHECK(it != slot_of_.end(), "a value is used before it is defined");
  return it->second;
}

bool Lowering::known(const Op& op) const {
  for (const Value* v : op.operands) {
    if (!known(v)) return false;
  }
  return true;
}

int32_t Lowering::instruction(const Op& op, const std::vector<int32_t>& operands,
                              const std::vector<int32_t>& results) {
  emulate::Program& p = tape_.program;
  Instr in{.kind = Instr::Kind::kOp, .op = &op};
  if (const auto it = sites_.find(&op); it != sites_.end()) in.target = it->second;
  in.operands_begin = static_cast<int32_t>(p.slots.size());
  p.slots.insert(p.slots.end(), operands.begin(), operands.end());
  in.operands_end = in.results_begin = static_cast<int32_t>(p.slots.size());
  p.slots.insert(p.slots.end(), results.begin(), results.end());
  in.results_end = static_cast<int32_t>(p.slots.size());
  p.code.push_back(in);
  return static_cast<int32_t>(p.code.size()) - 1;
}

std::vector<int32_t> Lowering::operand_slots(const Op& op) {
  std::vector<int32_t> out;
  for (const Value* v : op.operands) {
    int32_t s = slot(v);
    // Reads go to where the data really is.
    if (known_[static_cast<size_t>(s)] && std::holds_alternative<emulate::Ref>(value(s))) {
      const View& original = view(v);
      const View actual = resolve(original);
      if (actual.buffer != original.buffer) s = new_slot(ref(actual), true);
    }
    out.push_back(s);
  }
  return out;
}

void Lowering::evaluate_now(const Op& op) {
  std::vector<int32_t> in, out;
  for (const Value* v : op.operands) in.push_back(slot(v));
  for (const auto& r : op.results) out.push_back(define_unknown(r.get()));
  const int32_t at = instruction(op, in, out);
  ops_.run(tape_.program.code[static_cast<size_t>(at)]);
  tape_.program.code.pop_back();
  for (int32_t s : out) known_[static_cast<size_t>(s)] = true;
}

void Lowering::generic(const Op& op) {
  // A ref made from a run-time index stays a ref into the buffer: it may be used after a copy that
  // was put off has been made or dropped. Its users make the copies (materialise_behind).
  const bool view = op.info().effect == ir::Effect::kView;
  const std::vector<int32_t> in = view ? slots_of(op.operands) : operand_slots(op);
  std::vector<int32_t> out;
  for (const auto& r : op.results) out.push_back(define_unknown(r.get()));
  const int32_t at = instruction(op, in, out);
  ++tape_.generic;
  emit([at](CoreRun& run) {
    emulate::CoreOps ops{*run.machine, *run.core, run.frame};
    ops.run(run.tape->program.code[static_cast<size_t>(at)]);
    return Flow::kNext;
  });
}

View Lowering::resolve(const View& v) {
  View out;
  switch (aliases_.translate(v, out)) {
    case AliasMap::Hit::kNone:
      return v;
    case AliasMap::Hit::kInside:
      return out;
    case AliasMap::Hit::kPartly:
      materialise(v);
      return v;
  }
  return v;
}

void Lowering::materialise_behind(const Value* ref) {
  const Value* base = base_of(ref);
  if (known(base)) {
    materialise(view(base));
  } else {
    materialise_all();
  }
}

void Lowering::copy_now(const View& src, const View& dst) {
  ++tape_.copies;
  if (is_linear(src) && is_linear(dst)) {
    const std::byte* from = bytes_of(src);
    std::byte* to = bytes_of(dst);
    const auto n = static_cast<size_t>(dst.num_bytes());
    emit([from, to, n](CoreRun&) {
      std::memmove(to, from, n);
      return Flow::kNext;
    });
    return;
  }
  emit([src, dst](CoreRun&) {
    emulate::copy_view(src, dst);
    return Flow::kNext;
  });
}

std::expected<Tape, Diagnostics> lower(const emulate::Kernel& kernel, emulate::Machine& machine,
                                       int core, const KernelTable& kernels,
                                       const LowerOptions& options) {
  try {
    return Lowering(kernel, machine, core, kernels, options).run();
  } catch (emulate::Fault& f) {
    return std::unexpected(Diagnostics{std::move(f.diagnostic)});
  }
}

}  // namespace gridless::cpu
