// Hostile timings: kernels that are proved clean give the same results under all of them, and a
// racy one gives wrong ones under some.
#include "gridless/emulate/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "kernels/gallery.h"

namespace gridless::emulate {
namespace {

struct Lesson {
  ir::Program program;
  std::vector<std::vector<std::byte>> data;

  Lesson(const std::string& name, int cores) {
    const kernels::Lesson* lesson = *kernels::find_lesson(name);
    std::map<std::string, std::string> keys;
    for (const kernels::Option& o : lesson->options)
      if (o.key == "cores") keys["cores"] = std::to_string(cores);
    const auto options = lesson->with(keys);
    if (!options) throw std::runtime_error(options.error().message);
    program = std::move(*lesson->build(*options));
    data.resize(program.call.operands.size());
    for (const auto& core : lesson->inputs(*options, 7))
      for (size_t k = 0; k < data.size(); ++k) {
        const std::vector<std::byte> bytes = core[k].bytes();
        data[k].insert(data[k].end(), bytes.begin(), bytes.end());
      }
  }

  CallResult run(int cores, Scheduler* scheduler) const {
    const std::vector<std::span<const std::byte>> spans(data.begin(), data.end());
    return run_call(program.module, program.call, cores, spans, {.scheduler = scheduler}).value();
  }
};

TEST(Adversary, ChangesNothingInCleanKernels) {
  for (const auto& [name, cores] :
       {std::pair{"07_double_buffer", 1}, std::pair{"14_barrier_and_shift", 4},
        std::pair{"15_all_reduce", 4}}) {
    const Lesson lesson(name, cores);
    const CallResult plain = lesson.run(cores, nullptr);
    ASSERT_TRUE(plain.report.finished) << name;
    for (int seed = 0; seed < 10; ++seed) {
      Adversary adversary(static_cast<uint64_t>(seed));
      const CallResult hostile = lesson.run(cores, &adversary);
      EXPECT_TRUE(hostile.report.finished) << name << seed;
      EXPECT_THAT(hostile.report.diagnostics, testing::IsEmpty())
          << name << seed << to_string(hostile.report.diagnostics);
      EXPECT_EQ(hostile.outputs, plain.outputs) << name << " seed " << seed;
    }
    ProgramOrder order;
    EXPECT_EQ(lesson.run(cores, &order).outputs, plain.outputs) << name;
  }
}

TEST(Adversary, Runs128Cores) {
  constexpr int kCores = 128;
  lang::Kernel k("ring", kCores);
  const lang::Ref y = k.output("y", Elem::kF32, {8, 128});
  k.scope([&] {
    const lang::Ref mine = k.vmem(Elem::kF32, {8, 128}), slot = k.vmem(Elem::kF32, {8, 128});
    const lang::Sem sent = k.dma_sem(), received = k.dma_sem(), out = k.dma_sem();
    mine.store(k.constant({8, 128}, Elem::kF32, 3));
    k.barrier_all();
    const lang::Copy c = k.copy_to((k.core() + 1) % k.cores(), mine, slot, sent, received);
    k.wait_received(slot, received);
    c.wait_sent();
    k.copy(slot, y, out).wait();
  });
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  Adversary adversary(1);
  const auto run =
      run_call(program->module, program->call, kCores, {}, {.scheduler = &adversary}).value();
  EXPECT_THAT(run.report.diagnostics, testing::IsEmpty()) << to_string(run.report.diagnostics);
  const std::vector<float> three(8 * 128 * kCores, 3.0f);
  EXPECT_TRUE(std::ranges::equal(run.outputs[0], std::as_bytes(std::span(three))));
}

// Two copies in flight on one semaphore: the first wait may be met by the second copy, or by half
// of each.
CallResult shared_semaphore(Scheduler* scheduler) {
  lang::Kernel k("shared", 1);
  const lang::Ref x = k.input("x", Elem::kF32, {16, 128}), y = k.output("y", Elem::kF32, {8, 128});
  k.scope([&] {
    const lang::Ref a = k.vmem(Elem::kF32, {2, 8, 128}), b = k.vmem(Elem::kF32, {8, 128});
    const lang::Sem in = k.dma_sem(), out = k.dma_sem();
    const lang::Copy c0 = k.copy(x.rows(0, 8), a.at(0), in), c1 = k.copy(x.rows(8, 8), a.at(1), in);
    c0.wait();
    b.store(a.at(0).load());
    c1.wait();
    k.copy(b, y, out).wait();
  });
  const auto program = k.finish();
  const std::vector<float> data(16 * 128, 1.0f);
  const std::vector<std::span<const std::byte>> inputs = {std::as_bytes(std::span(data))};
  return run_call(program->module, program->call, 1, inputs, {.scheduler = scheduler}).value();
}

TEST(Adversary, ShowsARaceUnderSomeSeedAndTheSameRunForTheSameSeed) {
  ProgramOrder order;
  const CallResult right = shared_semaphore(&order);
  int wrong = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Adversary first(seed), second(seed);
    const CallResult a = shared_semaphore(&first);
    EXPECT_EQ(a.outputs, shared_semaphore(&second).outputs);
    wrong += a.outputs != right.outputs;
  }
  EXPECT_GT(wrong, 0);
  EXPECT_LT(wrong, 40);
}

}  // namespace
}  // namespace gridless::emulate
