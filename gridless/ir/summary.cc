#include "gridless/ir/summary.h"

#include <algorithm>

#include "gridless/ir/composite.h"

namespace gridless::ir {
namespace {

class Counter {
 public:
  explicit Counter(Summary& out) : out_(out) {}

  void memory(Type t) {
    if (!t || !t.is_memref() || t.num_elements() == kDynamic) return;
    if (is_semaphore(t.elem())) {
      out_.semaphores += t.num_elements();
    } else if (t.space() == Space::kVmem) {
      out_.vmem_bytes += t.num_bytes();
    } else if (t.space() == Space::kSmem) {
      out_.smem_bytes += t.num_bytes();
    }
  }

  void count(const Op& op, int64_t loops) {
    ++out_.ops[op.info().name];
    ++out_.total_ops;
    const bool loop = op.code == OpCode::kScfFor || op.code == OpCode::kScfWhile;
    loops += loop;
    out_.deepest_loop = std::max(out_.deepest_loop, loops);
    switch (op.code) {
      case OpCode::kMemrefAlloca:
      case OpCode::kTpuSemAlloc:
        if (!op.results.empty()) memory(op.result()->type);
        break;
      case OpCode::kTpuEnqueueDma:
        ++out_.copies;
        if (op.find("operandSegmentSizes") && !op.segment(4).empty()) {
          ++out_.remote_copies;
          out_.communicates = true;
        }
        break;
      case OpCode::kTpuSemSignal:
        out_.communicates |= op.find("operandSegmentSizes") && !op.segment(2).empty();
        break;
      case OpCode::kTpuSemBarrier:
        out_.communicates = true;
        break;
      default:
        break;
    }
    if (const std::string_view name = composite_name(op); !name.empty())
      ++out_.composites[std::string(name)];
    for (const auto& region : op.regions)
      for (const auto& block : region->blocks)
        for (const auto& inner : block->ops) count(*inner, loops);
  }

 private:
  Summary& out_;
};

}  // namespace

Summary summarise(const Module& module) {
  Summary out;
  out.version = module.version;
  Counter counter(out);
  counter.count(*module.top, 0);
  const Op* entry = module.entry();
  if (!entry) return out;
  out.kernel = entry->text_attr("sym_name");
  if (entry->regions.empty() || entry->regions[0]->blocks.empty()) return out;
  for (const auto& arg : entry->body().args) {
    out.args.push_back(arg->type);
    // Operands in VMEM or SMEM occupy it for the whole launch, as scratch does.
    counter.memory(arg->type);
  }
  return out;
}

}  // namespace gridless::ir
