// Deadlock: no timing lets these cores go on. The wait-for graph in words.
#include <fmt/format.h>

#include <set>

#include "gridless/emulate/check/rules.h"
#include "gridless/emulate/check/wait_for.h"

namespace gridless::emulate {
namespace {

// The allocation, argument or barrier op that a semaphore ref comes from.
const ir::Value* root(const ir::Value* v) {
  while (v->op && v->op->info().effect == ir::Effect::kView) v = v->op->operands[0];
  return v;
}

// The semaphore refs that an op adds to.
std::vector<const ir::Value*> fed_by(const ir::Op& op) {
  std::vector<const ir::Value*> out;
  if (op.code == ir::OpCode::kTpuSemSignal) out.push_back(op.operands[0]);
  if (op.code == ir::OpCode::kTpuEnqueueDma) {
    for (size_t segment : {1, 3})
      for (const ir::Value* v : op.segment(segment)) out.push_back(v);
  }
  return out;
}

bool same_place(const ir::Value* a, const ir::Value* b) {
  const auto barrier = [](const ir::Value* v) {
    return v->op && v->op->code == ir::OpCode::kTpuSemBarrier;
  };
  return a == b || (barrier(a) && barrier(b));
}

const ir::Value* awaited(const ir::Op& wait) {
  if (wait.code == ir::OpCode::kTpuSemWait) return root(wait.operands[0]);
  const bool target = wait.bool_attr_or("wait_target", true);
  std::vector<ir::Value*> segment = wait.segment(target ? 3 : 1);
  if (segment.empty()) segment = wait.segment(3);
  return root(segment[0]);
}

}  // namespace

void Rules::deadlock(const WaitForGraph& graph) {
  if (trace_.stuck.empty()) return;
  std::vector<int> cores;
  for (const Stuck& s : trace_.stuck) cores.push_back(s.core);
  const Stuck& first_stuck = trace_.stuck[0];
  Finding& f = add("deadlock", {first_stuck.op, first_stuck.iteration},
                   fmt::format("deadlock{}: {} of {} cores wait for ever",
                               findings_.empty() ? " under every timing" : "", trace_.stuck.size(),
                               trace_.cores),
                   "who should have signalled, and were its device id and count right?", cores);
  for (const Stuck& s : trace_.stuck) {
    const SemaphoreLog& log = trace_.semaphores[static_cast<size_t>(s.semaphore)];
    std::string note = fmt::format("core {} waits at {} for {} on {}, which holds {}", s.core,
                                   trace_.where({s.op, s.iteration}), s.need,
                                   trace_.semaphore_name(s.semaphore), log.left);
    note += log.increments.empty() ? "; nobody has added to it" : "; " + who_feeds(s.semaphore);
    const std::string whom = graph.whom(s.core);
    if (!whom.empty()) note += "; " + whom;
    f.diagnostic.notes.push_back(std::move(note));
  }
  if (graph.cycle.size() > 1)
    f.diagnostic.notes.push_back(fmt::format("cycle: core {} waits for core {}",
                                             fmt::join(graph.cycle, " waits for core "),
                                             graph.cycle[0]));
  std::set<std::string> feeding;
  const ir::Value* place = awaited(*first_stuck.op);
  for (const Instr& in : trace_.kernel->body.code) {
    if (in.kind != Instr::Kind::kOp) continue;
    for (const ir::Value* v : fed_by(*in.op))
      if (same_place(root(v), place))
        feeding.insert(fmt::format("{} at {}", in.op->info().name, in.op->loc.str()));
  }
  f.diagnostic.notes.push_back(
      feeding.empty() ? fmt::format("no operation of the program adds to what core {} waits for",
                                    first_stuck.core)
                      : fmt::format("what core {} waits for is fed by {}", first_stuck.core,
                                    fmt::join(feeding, ", ")));
  show_always(f);
  for (const Stuck& s : trace_.stuck) bytes_of_waits(s.semaphore, &s);
}

}  // namespace gridless::emulate
