// What the generated programs have in common.
#pragma once

#include <random>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "tests/certificate/library/programs.h"

namespace gridless::certificate {

using lang::Elem;
using lang::Kernel;
using lang::Ref;
using lang::Sem;
using lang::Shape;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15u + 1) {}
  // 0 to n - 1.
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::mt19937_64 engine_;
};

inline constexpr int kSlots = 3;
inline const Shape kBlock = {1, 128};
inline const Shape kBlocks = {kSlots, 1, 128};

// What every program works on: x comes in, slots are scratch, y shows at the end what they hold.
struct Memory {
  Ref x, y, slots;
  Sem done;
};
Memory operands(Kernel& k);
void allocate(Kernel& k, Memory& m);  // the rest; the slots get values
void copy_out(Kernel& k, const Memory& m);

// The program, with random inputs.
Generated finished(Kernel& k, uint64_t seed);

}  // namespace gridless::certificate
