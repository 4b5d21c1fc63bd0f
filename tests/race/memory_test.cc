// Memory and counters: garbage, bounds, capacity, what is left at the end, what was not given.
#include "tests/race/race_case.h"

namespace gridless::lang {
namespace {

constexpr int64_t kRows = 8, kColumns = 128;

void no_initial_value(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns}),
              sum = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    k.copy(x, a, done).wait();
    if (fixed) sum.store(k.constant({kRows, kColumns}, Elem::kF32, 0));
    HERE const Vec v = sum.load();
    sum.store(v + a.load());
    k.copy(sum, y, done).wait();
  });
}

// A product with zero hides finite garbage, not NaN.
void garbage_times_zero(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Vec lane = iota(k, {kRows, kColumns}, 1), one = full(k, Elem::kF32, {kRows, kColumns}, 1);
    HERE const Vec v = a.load();
    a.store(fixed ? where(lane < 0, v, 1.0) : v * cast(lane < 0, Elem::kF32) + one);
    k.copy(a, y, k.dma_sem()).wait();
  });
}

void garbage_is_copied_out(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    if (fixed) a.store(k.constant({kRows, kColumns}, Elem::kF32, 0));
    HERE k.copy(a, y, done).wait();
  });
}

// The table's entry is the row to take.
void row_of_table(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {4, kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    const Scalar row = table.get({Scalar(0)});
    HERE const Ref source = x.at(fixed ? row % 4 : row);
    k.copy(source, a, done).wait();
    k.copy(a, y, done).wait();
  });
}

// Loads entry -1 and subtracts it from itself.
void unused_load_beyond(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    const Scalar before = table.get({Scalar(0)}) - (fixed ? 0 : 1);
    HERE const Scalar value = table.get({before});
    k.loop(0, value - value + 2,
           [&](Scalar) { a.store(k.constant({kRows, kColumns}, Elem::kF32, 1)); });
    k.copy(a, y, done).wait();
  });
}

void too_much_vmem(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    HERE const Ref big = k.vmem(Elem::kF32, {fixed ? 64 : 136, 1024, 128});
    const Sem done = k.dma_sem();
    big.at(0).rows(0, kRows).store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    k.copy(big.at(0).rows(0, kRows), y, done).wait();
  });
}

void signals_too_often(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    HERE const Sem ready = k.sem();
    a.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    k.signal(ready, fixed ? 1 : 2);
    k.wait(ready);
    k.copy(a, y, done).wait();
  });
}

// The caller gives no table, and the loop is as long as it says.
void bound_not_given(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input(fixed ? "table" : "missing", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    a.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    const Scalar n = table.get({Scalar(1)});
    HERE k.loop(0, n, [&](Scalar) { a.store(a.load() + 1.0); });
    k.copy(a, y, done).wait();
  });
}

const RaceCase kCases[] = {
    {"NoInitialValue", "uninitialised_read", 1, no_initial_value},
    {"GarbageTimesZero", "uninitialised_read", 1, garbage_times_zero},
    {"GarbageIsCopiedOut", "uninitialised_read", 1, garbage_is_copied_out},
    {"RowOfTable", "out_of_bounds", 1, row_of_table, {7, 0, 0, 0}},
    {"UnusedLoadBeyond", "out_of_bounds", 1, unused_load_beyond, {0, 1, 2, 3}, true},
    {"TooMuchVmem", "capacity", 1, too_much_vmem},
    {"SignalsTooOften", "semaphore_not_zero", 1, signals_too_often, {}, false, {"use_after_scope"}},
    {"BoundNotGiven", "unknown_scalar", 1, bound_not_given, {0, 3, 0, 0}, true},
};
RACE_SUITE(Memory, kCases);

TEST(Collective, BarrierNeedsAnId) {
  Kernel k("barrier", 2);
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    a.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    k.barrier_all();
    k.copy(a, y, done).wait();
  });
  auto program = k.finish();
  ASSERT_TRUE(program);
  const auto with = emulate::check(program->module, program->call, 2, {});
  EXPECT_TRUE(with->certificate) << to_string(with->diagnostics());
  program->call.collective_id.reset();
  const auto without = emulate::check(program->module, program->call, 2, {});
  ASSERT_EQ(without->findings.size(), 1u);
  EXPECT_EQ(without->findings[0].diagnostic.kind, "collective_mismatch");
}

}  // namespace
}  // namespace gridless::lang
