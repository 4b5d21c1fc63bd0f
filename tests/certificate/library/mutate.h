// Mutants: a kernel with one small mistake put in, of the kinds that people make with copies and
// semaphores. The checker must find every one that changes some execution.
#pragma once

#include <string>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::certificate {

enum class Operator {
  kDropWait,        // a wait is missing
  kOtherSemaphore,  // a wait, signal or copy names another semaphore
  kOtherSlot,       // a slice takes another element of the array (slot, semaphore)
  kMoveEarlier,     // a copy start, wait or signal one step earlier (early reuse, early start)
  kMoveLater,       // one step later (start after use, wait after use)
  kMoveToEnd,       // a wait at the end of its block
  kOtherPeer,       // a copy or signal to another core
  kAmount,          // a signal or wait of one more or one less
  kBytes,           // a wait for half the bytes
  kBound,           // a loop of one round more or less
  kDouble,          // a signal, wait or copy start twice
  kLoseSignal,      // a signal is missing
  kDropCopy,        // a copy start is missing
  kDropBarrier,     // all signals and waits of a barrier are missing
  kShrink,          // an allocation is one smaller in its first dimension
  kShift,           // a slice starts one block later
};
inline constexpr int kOperators = static_cast<int>(Operator::kShift) + 1;
const char* name(Operator op);
// Why some of its mutants change nothing.
const char* why_equivalent(Operator op);

struct Mutation {
  Operator op = Operator::kDropWait;
  size_t place = 0;   // among the ops of the entry function (edit.h)
  int variant = 0;    // which of the ways
  std::string where;  // "tpu.wait_dma at FILE:LINE"
};

// Every mutation of the module, for that many cores.
std::vector<Mutation> mutations(ir::Module& module);
// Makes it, in a module equal to the one that it was listed for.
void apply(ir::Module& module, const Mutation& mutation, int cores);

}  // namespace gridless::certificate
