// Exchanges in two levels: sums and parts of all cores, of one host, of two and of four.
#include "gridless/blocks/collectives/by_hosts.h"

#include "tests/blocks/block_run.h"

namespace gridless::blocks {
namespace {

// Whole numbers, so that every order of a sum gives the same bits.
float value(int core, int64_t i) { return static_cast<float>((core * 37 + i * 11) % 101); }

std::vector<Bytes> inputs(int core, int64_t panels) {
  Floats v;
  for (int64_t i = 0; i < panels * kLanes; ++i) v.push_back(value(core, i));
  return {bytes_of(v)};
}

// panels: not a multiple of the pieces.
void sum_and_gather(int64_t panels) {
  for (const int cores : {1, 4, 8, 16, 32}) {
    SCOPED_TRACE(cores);
    Kernel k("by_hosts", cores);
    const Ref in = k.input("in", Elem::kF32, {panels, 1, kLanes});
    const Ref sum_out = k.output("sum", Elem::kF32, in.shape());
    const Ref all_out = k.output("all", Elem::kF32, {cores * panels, 1, kLanes});
    k.barrier_all();
    k.scope([&] {
      SumByHosts sums(k, in.shape());
      GatherByHosts gather(k, in.shape());
      const Ref mine = copy_in(k, in), x = k.vmem(Elem::kF32, in.shape());
      x.store(zeros(k, Elem::kF32, x.shape()));
      // Three times, so that buffers and semaphores come round again.
      k.loop(0, 3, [&](Scalar turn) {
        sums.add_sum(turn, mine, x);
        const Ref all = gather.run(mine, turn);
        k.if_(turn == 2, [&] { copy_out(k, all.rows(0, cores * panels), all_out); });
      });
      copy_out(k, x, sum_out);
    });
    const auto program = k.finish();
    ASSERT_TRUE(program) << to_string(program.error());
    cpu::PerCoreBytes memory;
    for (int c = 0; c < cores; ++c) memory.push_back(inputs(c, panels));
    const cpu::Ran ran = cpu::run_emulated(*program, memory);
    ASSERT_TRUE(ran.diagnostics.empty()) << to_string(ran.diagnostics);
    for (int c = 0; c < cores; ++c) {
      const Floats sum = values_of<float>(ran.results[static_cast<size_t>(c)][0]);
      const Floats all = values_of<float>(ran.results[static_cast<size_t>(c)][1]);
      for (int64_t i = 0; i < panels * kLanes; ++i) {
        float want = 0;
        for (int from = 0; from < cores; ++from) {
          want += 3 * value(from, i);
          ASSERT_EQ(all[static_cast<size_t>(from * panels * kLanes + i)], value(from, i));
        }
        ASSERT_EQ(sum[static_cast<size_t>(i)], want) << "core " << c;
      }
    }
  }
}

TEST(ByHosts, SumAndGatherEveryCore) { sum_and_gather(5); }
// Sums of so much go in pieces.
TEST(ByHosts, LargePartsToo) { sum_and_gather(67); }

}  // namespace
}  // namespace gridless::blocks
