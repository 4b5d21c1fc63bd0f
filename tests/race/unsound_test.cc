// Programs that a rule which looks at the end of the kernel only, or at one order only, would
// prove.
#include "tests/race/race_case.h"

namespace gridless::lang {
namespace {

constexpr int64_t kRows = 8, kColumns = 128;

void write_ones(Kernel& k, const Ref& y) {
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    a.store(k.constant(a.shape(), Elem::kF32, 1));
    k.copy(a, y, k.dma_sem()).wait();
  });
}

// The first turn's semaphore keeps a unit, which the second turn takes from its own: the sum is
// zero, but the chip stops at the end of the first scope.
void count_outlives_its_scope(Kernel& k, bool fixed, int& line) {
  write_ones(k, k.output("y", Elem::kF32, {kRows, kColumns}));
  k.loop(0, 2, [&](Scalar i) {
    k.scope([&] {
      HERE const Sem turn = k.sem();
      k.if_(i < 1, [&] { k.signal(turn); });
      k.if_(fixed ? i < 1 : i > 0, [&] { k.wait(turn); });
    });
  });
}

// Core 0 takes away from core 2 what core 2 may not have waited for yet: then it hangs.
void takes_a_count_away(Kernel& k, bool fixed, int& line) {
  write_ones(k, k.output("y", Elem::kF32, {kRows, kColumns}));
  k.scope([&] {
    const Sem count = k.sem(), go = k.sem(), turn = k.sem();
    k.barrier_all();
    k.if_(k.core() < 1, [&] {
      k.wait(turn);
      HERE k.signal(count, fixed ? 1 : -1, 2);
    });
    k.if_(k.core() == 1, [&] {
      k.signal(count, 1, 2);
      k.signal(turn, 1, 0);
      k.wait(go);
      k.signal(count, fixed ? 1 : 2, 2);
    });
    k.if_(k.core() > 1, [&] {
      k.wait(count);
      k.signal(go, 1, 1);
      k.wait(count, fixed ? 2 : 1);
    });
  });
}

void waits_for_less_than_nothing(Kernel& k, bool fixed, int& line) {
  write_ones(k, k.output("y", Elem::kF32, {kRows, kColumns}));
  k.scope([&] {
    const Sem count = k.sem();
    k.signal(count);
    HERE k.wait(count, fixed ? 0 : -1);
    k.wait(count, fixed ? 1 : 2);
  });
}

// Rows 12 to 19 of 16, of which only the first four are used: those the copy may still write.
void load_beyond_meets_a_copy(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {2 * kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {4, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {2 * kRows, kColumns}), b = k.vmem(Elem::kF32, {4, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    const Scalar row = table.get({Scalar(0)});
    const Copy c = k.copy(x, a, in);
    if (fixed) c.wait();
    HERE const Vec v = a.load({fixed ? row - 4 : row, Scalar(0)}, {kRows, kColumns});
    b.store(slice(v, {0, 0}, {4, kColumns}));
    if (!fixed) c.wait();
    k.copy(b, y, out).wait();
  });
}

const RaceCase kCases[] = {
    {"CountOutlivesItsScope", "semaphore_not_zero", 1, count_outlives_its_scope},
    {"WaitsForLessThanNothing", "invalid_ir", 1, waits_for_less_than_nothing},
};
RACE_SUITE(Unsound, kCases);

// Plain execution stops at the amount or the load itself, so neither has a timing to show.
const RaceCase kStopped[] = {
    {"TakesACountAway", "invalid_ir", 3, takes_a_count_away},
    {"LoadBeyondMeetsACopy",
     "race",
     1,
     load_beyond_meets_a_copy,
     {12, 0, 0, 0},
     false,
     {"out_of_bounds"}},
};

TEST(UnsoundStopped, IsFoundAtItsLineAndTheTwinIsProved) {
  for (const RaceCase& c : kStopped) {
    expect_found(c, __FILE__);
    expect_twin_proved(c);
  }
}

// Nobody runs what no chip can hold: it would take this machine's memory.
TEST(UnsoundSize, FarBeyondTheChipIsNotRun) {
  Kernel k("vast", 1);
  write_ones(k, k.output("y", Elem::kF32, {kRows, kColumns}));
  k.scope([&] {
    k.vmem(Elem::kF32, {int64_t{1} << 22, kRows, kColumns});
    k.dma_sems(int64_t{1} << 31);
  });
  const auto program = k.finish();
  const emulate::CheckReport report = emulate::check(program->module, program->call, 1, {}).value();
  ASSERT_EQ(report.findings.size(), 2u) << to_string(report.diagnostics());
  for (const Diagnostic& d : report.diagnostics()) EXPECT_EQ(d.kind, "capacity") << d.str();
  EXPECT_EQ(report.events, 0);
  EXPECT_FALSE(report.certificate);
}

}  // namespace
}  // namespace gridless::lang
