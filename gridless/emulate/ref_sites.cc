#include "gridless/emulate/ref_sites.h"

#include <algorithm>
#include <unordered_set>

namespace gridless::emulate {
namespace {

// What a result of a loop or a branch, or an argument of its blocks, may be.
std::vector<const ir::Value*> carried(const ir::Value& v) {
  const ir::Op* op = v.op ? v.op : v.block->parent->parent;
  if (!op) return {};
  std::vector<const ir::Value*> out;
  const auto take = [&](const auto& values, size_t k) {
    if (k < values.size()) out.push_back(values[k]);
  };
  const auto index = static_cast<size_t>(v.index);
  const auto yielded = [&](size_t region, size_t k) {
    if (region >= op->regions.size() || op->regions[region]->blocks.empty()) return;
    const ir::Block& block = op->body(region);
    if (!block.ops.empty()) take(block.ops.back()->operands, k);
  };
  switch (op->code) {
    case ir::OpCode::kScfFor:  // arguments: the counter, then what is carried
      if (!v.op && index == 0) break;
      take(op->operands, (v.op ? index : index - 1) + 3);
      yielded(0, v.op ? index : index - 1);
      break;
    case ir::OpCode::kScfWhile:  // the condition's operands: whether to go on, then what is
                                 // carried
      if (v.op || v.block == &op->body(1)) {
        yielded(0, index + 1);
      } else {
        take(op->operands, index);
        yielded(1, index);
      }
      break;
    case ir::OpCode::kScfIf:
    case ir::OpCode::kTpuRegion:
      for (size_t r = 0; v.op && r < op->regions.size(); ++r) yielded(r, index);
      break;
    default:
      break;
  }
  return out;
}

// Not from constants, grid indices, loop counters and device ids alone.
bool follows_from_data(const ir::Value& value) {
  std::vector<const ir::Value*> open{&value};
  std::unordered_set<const ir::Value*> seen;
  while (!open.empty()) {
    const ir::Value& v = *open.back();
    open.pop_back();
    if (!seen.insert(&v).second) continue;
    const ir::Op* of = v.op ? v.op : v.block->parent->parent;
    if (v.op) {
      if (of->info().effect != ir::Effect::kPure) return true;
      open.insert(open.end(), of->operands.begin(), of->operands.end());
    } else if (of->code == ir::OpCode::kScfFor && v.index == 0) {
      const size_t bounds = std::min<size_t>(3, of->operands.size());
      open.insert(open.end(), of->operands.begin(),
                  of->operands.begin() + static_cast<std::ptrdiff_t>(bounds));
    } else if (of->code != ir::OpCode::kFuncFunc) {
      return true;
    }
  }
  return false;
}

bool decided_by_data(const ir::Op& op) {
  for (const ir::Op* at = op.parent->parent->parent; at && at->parent;
       at = at->parent->parent->parent) {
    if (at->code == ir::OpCode::kScfWhile) return true;
    const size_t deciding = at->code == ir::OpCode::kScfIf    ? 1
                            : at->code == ir::OpCode::kScfFor ? 3
                                                              : 0;
    for (size_t k = 0; k < std::min(deciding, at->operands.size()); ++k)
      if (follows_from_data(*at->operands[k])) return true;
  }
  return false;
}

}  // namespace

RefSites::RefSites(const Kernel& kernel) : kernel_(kernel) {
  for (const Instr& in : kernel.body.code)
    if (in.kind == Instr::Kind::kOp && in.op->info().effect == ir::Effect::kAlloc)
      sites_[in.op] = in.target;
}

std::set<int> RefSites::sites_of(const ir::Value* ref) const {
  std::set<int> sites;
  std::set<const ir::Value*> seen;
  collect(ref, sites, seen);
  return sites;
}

void RefSites::collect(const ir::Value* v, std::set<int>& sites,
                       std::set<const ir::Value*>& seen) const {
  while (v->op && v->op->info().effect == ir::Effect::kView) v = v->op->operands[0];
  if (!seen.insert(v).second) return;
  if (v->op) {
    if (const auto it = sites_.find(v->op); it != sites_.end()) sites.insert(it->second);
  } else if (v->block == &kernel_.function->body()) {
    sites.insert(v->index);
  }
  for (const ir::Value* from : carried(*v)) collect(from, sites, seen);
}

std::vector<bool> RefSites::written_for_some_data() const {
  std::vector<bool> out(kernel_.sites.size(), false);
  const auto mark = [&](const ir::Value* ref) {
    for (const int site : sites_of(ref)) out[static_cast<size_t>(site)] = true;
  };
  for (const Instr& in : kernel_.body.code) {
    if (in.kind != Instr::Kind::kOp || !decided_by_data(*in.op)) continue;
    const ir::Effect effect = in.op->info().effect;
    if (in.op->code == ir::OpCode::kTpuEnqueueDma) mark(in.op->segment(2).at(0));
    if (effect != ir::Effect::kWriteRef && effect != ir::Effect::kReadWriteRef) continue;
    for (const ir::Value* v : in.op->operands)
      if (v->type.is_memref()) mark(v);
  }
  return out;
}

}  // namespace gridless::emulate
