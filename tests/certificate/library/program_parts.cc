#include "tests/certificate/library/program_parts.h"

#include <algorithm>

#include "gridless/base/check.h"
#include "tests/certificate/library/mutate.h"

namespace gridless::certificate {

namespace {

std::vector<std::byte> numbers(int cores, uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<size_t>(cores * kSlots * 128));
  for (float& v : values) v = static_cast<float>(random.below(1000));
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Memory operands(Kernel& k) {
  return {k.input("x", Elem::kF32, kBlocks), k.output("y", Elem::kF32, kBlocks), {}, {}};
}

void allocate(Kernel& k, Memory& m) {
  m.slots = k.vmem(Elem::kF32, kBlocks);
  m.done = k.dma_sem();
  m.slots.store(k.constant(kBlocks, Elem::kF32, 100));
}

void copy_out(Kernel& k, const Memory& m) { k.copy(m.slots, m.y, m.done).wait(); }

Generated finished(Kernel& k, uint64_t seed) {
  auto program = k.finish();
  GRIDLESS_CHECK(program, "{}", to_string(program.error()));
  Generated g{std::move(*program), k.cores(), {}};
  g.inputs.push_back(numbers(g.cores, seed));
  return g;
}

void spoil(Generated& g, uint64_t seed) {
  Random random(seed + 77);
  // Mostly mistakes of synchronisation.
  const auto about_slices = [](Operator op) {
    return op == Operator::kShift || op == Operator::kShrink || op == Operator::kBound;
  };
  for (int k = 1 + random.below(2); k > 0; --k) {
    std::vector<Mutation> all = mutations(g.program.module);
    std::erase_if(all, [&](const Mutation& m) { return about_slices(m.op) && random.chance(80); });
    if (all.empty()) return;
    apply(g.program.module, all[static_cast<size_t>(random.below(static_cast<int>(all.size())))],
          g.cores);
  }
}

}  // namespace gridless::certificate
