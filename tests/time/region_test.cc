// Cycles of straight-line code against figures worked out by hand from slots and latencies.
#include "gridless/chips/op_costs.h"
#include "gridless/time/bundle_slots.h"
#include "tests/time/timed_kernel.h"

namespace gridless::time {
namespace {

TEST(BundleSlots, ABundleHoldsAsManyAsItHasSlots) {
  BundleSlots slots;
  for (int k = 0; k < 8; ++k) EXPECT_EQ(slots.place(CostUnit::kValu, 3), 3 + k / 4);
  EXPECT_EQ(slots.place(CostUnit::kLoad, 0), 0);
  EXPECT_EQ(slots.place(CostUnit::kValu, 0), 0);  // an earlier gap is filled
  EXPECT_EQ(slots.length(), 5);
}

TEST(BundleSlots, AnEupOperationTakesAVectorSlotToo) {
  BundleSlots slots;
  for (int k = 0; k < 4; ++k) slots.place(CostUnit::kValu, 0);
  EXPECT_EQ(slots.place(CostUnit::kEup, 0), 1);
  EXPECT_EQ(slots.place(CostUnit::kEup, 0), 2);
  for (int k = 0; k < 3; ++k) EXPECT_EQ(slots.place(CostUnit::kValu, 0), 1);
  EXPECT_EQ(slots.place(CostUnit::kValu, 0), 2);
}

TEST(BundleSlots, AccessesToLessThanARegisterShareThreePlaces) {
  BundleSlots slots;
  for (int k = 0; k < 2; ++k) EXPECT_EQ(slots.place(CostUnit::kStore, 0, true), 0);
  EXPECT_EQ(slots.place(CostUnit::kLoad, 0, true), 0);
  EXPECT_EQ(slots.place(CostUnit::kLoad, 0, true), 1);
  EXPECT_EQ(slots.place(CostUnit::kLoad, 0), 0);
}

TEST(BundleSlots, TheTwoXlusTakeTurnsEveryFourCycles) {
  BundleSlots slots;
  EXPECT_EQ(slots.place(CostUnit::kXlu, 0), 0);
  EXPECT_EQ(slots.place(CostUnit::kXlu, 0), 0);
  EXPECT_EQ(slots.place(CostUnit::kXlu, 0), 4);
  EXPECT_EQ(slots.place(CostUnit::kXlu, 0), 4);
}

TEST(BundleSlots, AnXluTakesAnOperationInAGapThatIsWideEnough) {
  BundleSlots slots;
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(slots.place(CostUnit::kXlu, 10), 10);
    EXPECT_EQ(slots.place(CostUnit::kXlu, 17), 17);
  }
  EXPECT_EQ(slots.place(CostUnit::kXlu, 0), 0);
  EXPECT_EQ(slots.place(CostUnit::kXlu, 11), 21);  // between 14 and 17 there is no room
  EXPECT_EQ(slots.place(CostUnit::kXlu, 3), 3);    // the other unit
  EXPECT_EQ(slots.place(CostUnit::kXlu, 3), 4);
}

// The cycles of a kernel without any event.
double cycles(const std::function<void(Kernel&)>& body) {
  Kernel k("region");
  k.scope([&] { body(k); });
  return predict(k, 1, round_numbers(), kOneChip).ns;
}

TEST(Region, VectorsAreBoundByTheirSlots) {
  const auto adds = [](int64_t rows) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {rows, 1024}), b = k.vmem(Elem::kF32, {rows, 1024});
      b.store(a.load() + b.load());
    });
  };
  // Two loads a register, three slots: 512 registers more take 2 * 512 / 3 cycles more.
  EXPECT_NEAR(adds(576) - adds(64), 2 * 512 / 3.0, 2);
}

// Loads, then 32 pushes of two cycles each on one unit, 3 and 211 cycles, and 4 sums at two a
// cycle.
TEST(Region, ATileOfAProductIsPushedMultipliedAndPopped) {
  const double one = cycles([](Kernel& k) {
    const Ref x = k.vmem(Elem::kBf16, {16, 256}), w = k.vmem(Elem::kBf16, {256, 256});
    const Ref y = k.vmem(Elem::kF32, {16, 256});
    y.store(dot(x.load(), w.load(), zeros(k, Elem::kF32, {16, 256})));
  });
  EXPECT_NEAR(one, 64 + 3 + 211 + 4, 12);
}

TEST(Region, ManyTilesKeepBothUnitsBusy) {
  const auto gemv = [](int64_t depth) {
    return cycles([=](Kernel& k) {
      const Ref x = k.vmem(Elem::kBf16, {16, depth}), w = k.vmem(Elem::kBf16, {depth, 1024});
      const Ref y = k.vmem(Elem::kF32, {16, 1024});
      y.store(dot(x.load(), w.load(), zeros(k, Elem::kF32, {16, 1024})));
    });
  };
  // 256 rows more are 4 tiles more, 32 cycles each with both units.
  EXPECT_NEAR((gemv(2048) - gemv(1024)) / 4, 4 * 32, 4);
}

TEST(Region, ALoopPaysForEveryRound) {
  const auto loop = [](int64_t n) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {8, 128});
      k.loop(0, n, [&](Scalar) { a.store(a.load() + 1.0); });
    });
  };
  const double each = (loop(110) - loop(10)) / 100;
  EXPECT_GE(each, 5);   // load 1, add 2, store
  EXPECT_LE(each, 20);  // the branch and its delay slots
  EXPECT_EQ(loop(0), loop(0));
}

// It is executed under a predicate: its bundles pass in any case, and there is nothing to jump
// over.
TEST(Region, AShortBranchCostsTheSameTakenOrNot) {
  const auto branch = [](int wanted, int stores) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {8, 1024}), b = k.vmem(Elem::kF32, {8, 1024});
      k.if_(k.core() == wanted, [&] {
        for (int n = 0; n < stores; ++n) b.store(a.load() + static_cast<double>(n));
      });
      a.store(b.load());
    });
  };
  EXPECT_EQ(branch(0, 1), branch(1, 1));
  EXPECT_GT(branch(0, 1), branch(0, 0));
  EXPECT_GT(branch(0, 20), branch(1, 20)) << "a long one is jumped over";
}

// Both ways are computed beside what stands around the choice, one inside the other too.
TEST(Region, AChoiceOfScalarsDoesNotCutTheLine) {
  const auto line = [](int choices) {
    return cycles([=](Kernel& k) {
      const Ref table = k.smem(Elem::kI32, {8});
      const Ref a = k.vmem(Elem::kF32, {8, 1024}), b = k.vmem(Elem::kF32, {8, 1024});
      b.store(sin(a.load()));
      for (int n = 0; n < choices; ++n)
        k.if_(
            k.core() == n, [&] { table.set({n}, Scalar(1)); },
            [&] { k.if_(k.core() == n + 1, [&] { table.set({n}, Scalar(2)); }); });
      a.store(sin(b.load()));
    });
  };
  EXPECT_LE(line(4), line(0) + 2);
}

TEST(Region, ALoopOfOneRoundIsNone) {
  const auto line = [](int rounds, bool loop) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {8, 1024}), b = k.vmem(Elem::kF32, {8, 1024});
      const auto step = [&](Scalar) { b.store(sin(a.load())); };
      loop ? k.loop(0, rounds, step) : step(0);
      k.loop(0, 0, [&](Scalar) { a.store(b.load()); });
    });
  };
  EXPECT_EQ(line(1, true), line(1, false));
  EXPECT_GT(line(2, true), line(1, true) + chips::tpu7x_unit_costs().branch_delay);
}

// Across a wait, too; what the same block stored is still in registers.
TEST(Region, ALoadWaitsForAStoreThatMayHaveChangedIt) {
  const auto through = [](int64_t read) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {16, 128}), b = k.vmem(Elem::kF32, {8, 128});
      a.rows(0, 8).store(b.load());
      b.store(a.rows(read, 8).load() + 1.0);
    });
  };
  EXPECT_EQ(through(8), through(0)) << "the same part is not read again";
  const chips::UnitCosts& u = chips::tpu7x_unit_costs();
  EXPECT_EQ(through(4) - through(8), u.store_to_load + u.load_latency);
}

TEST(Region, ConstantsThatALoopCarriesArePutIntoRegisters) {
  const auto into = [](int64_t rows) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {rows, 128});
      const Vec sum = k.loop(0, 2, zeros(k, Elem::kF32, {rows, 128}),
                             [&](Scalar, Vec s) { return s + a.load(); });
      a.store(sum);
    });
  };
  // 64 registers more: a quarter of a cycle each, and 2 rounds of a third for the load.
  EXPECT_GE(into(576) - into(64), 64 / 4 + 2 * 64 / 3);
}

TEST(Region, ACheckThatRepeatsAnotherIsItsHaltAlone) {
  const auto through = [](bool same) {
    Kernel k("copies");
    const Ref x = k.input("x", Elem::kF32, {8, 128}), y = k.output("y", Elem::kF32, {8, 128});
    k.scope([&] {
      const Ref in = k.vmem(Elem::kF32, {8, 128}), out = k.vmem(Elem::kF32, {8, 128});
      const Sem done = k.dma_sem();
      k.copy(x, in, done).wait();
      const Ref from = same ? in : out;
      from.store(in.load() + 1.0);
      k.copy(from, y, done).wait();
    });
    return predict(k, 1, round_numbers(), kOneChip).ns;
  };
  // The arithmetic of the other one runs beside the load, the addition and the store: 1 + 2 + 1.
  EXPECT_NEAR(through(false) - through(true), chips::tpu7x_unit_costs().check_vmem - 1 - 4, 1);
}

TEST(Region, AReductionOverLanesHasItsLatencyOnceForManyRows) {
  const auto sums = [](int64_t rows) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {rows, 128}), b = k.vmem(Elem::kF32, {rows, 128});
      b.store(broadcast(sum(a.load(), 1), {rows, 128}));
    });
  };
  EXPECT_NEAR(sums(8), 142, 20);
  // Eight registers more, on two units that take one every four cycles.
  EXPECT_NEAR(sums(72) - sums(8), 8 / 2 * 4, 6);
}

// Panels of weights stand side by side without a copy: the first goes into a matrix unit while the
// others are still being loaded.
TEST(Region, WholeRegistersThatMoveCostNothing) {
  const auto gemv = [](bool panels) {
    return cycles([=](Kernel& k) {
      const Ref x = k.vmem(Elem::kBf16, {16, 2048}), y = k.vmem(Elem::kF32, {16, 512});
      const Ref w = k.vmem(Elem::kBf16, panels ? Shape{4, 2048, 128} : Shape{2048, 512});
      Vec weights;
      if (panels) {
        std::vector<Vec> parts;
        for (int p = 0; p < 4; ++p) parts.push_back(w.at(p).load());
        weights = concat(parts, 1);
      } else {
        weights = w.load();
      }
      y.store(dot(x.load(), weights, zeros(k, Elem::kF32, {16, 512})));
    });
  };
  EXPECT_NEAR(gemv(true), gemv(false), 10);
}

TEST(Region, WhatNobodyReadsIsNotComputed) {
  const auto with = [](bool more) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {64, 1024}), b = k.vmem(Elem::kF32, {64, 1024});
      const Vec x = a.load();
      if (more) sin(x);
      b.store(x + 1.0);
    });
  };
  EXPECT_EQ(with(true), with(false));
}

// Half of the lanes are chosen by a comparison of lane numbers with a constant: only they are
// computed.
TEST(Region, AKnownMaskDecides) {
  const auto selected = [](int lanes) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {8, 2048}), b = k.vmem(Elem::kF32, {8, 2048});
      const Vec x = a.load();
      b.store(where(iota(k, {8, 2048}, 1) < lanes, sin(x), x));
    });
  };
  const double all = selected(2048), half = selected(1024), none = selected(0);
  EXPECT_NEAR(half - none, (all - none) / 2, 40);
  EXPECT_GT(all - none, 300);  // sixteen registers of some ninety instructions, four a cycle
}

// A row's sum stays spread over the lanes when a loop carries it; a column that comes from memory
// has to be spread.
TEST(Region, ALoopKeepsLanesAlike) {
  const auto scaled = [](bool from_memory) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {8, 128}), column = k.vmem(Elem::kF32, {8, 1});
      const std::vector<Vec> sums = k.loop(0, 10, {zeros(k, Elem::kF32, {8, 1})},
                                           [&](Scalar, std::vector<Vec> s) -> std::vector<Vec> {
                                             return {s[0] + sum(a.load(), 1)};
                                           });
      const Vec by = from_memory ? column.load() : sums[0];
      a.store(a.load() * broadcast(by, {8, 128}));
      if (from_memory) column.store(sums[0]);
    });
  };
  EXPECT_NEAR(scaled(true) - scaled(false), 128, 20);
}

TEST(Region, TheSecondOfASineAndACosineFindsTheAngleReduced) {
  const auto both = [](bool second) {
    return cycles([=](Kernel& k) {
      const Ref a = k.vmem(Elem::kF32, {64, 1024}), b = k.vmem(Elem::kF32, {64, 1024});
      const Vec x = a.load();
      b.store(second ? sin(x) + cos(x) : sin(x) + x);
    });
  };
  EXPECT_LT(both(true), 1.3 * both(false));
}

TEST(Region, ACostThatIsGuessedIsSaid) {
  const auto warnings = [](bool measured) {
    Kernel k("guess");
    k.scope([&] {
      const Ref a = k.vmem(Elem::kF16, {16, 128});
      const Vec x = a.load();
      a.store(measured ? x : neg(x));
    });
    return predict(k, 1, round_numbers(), kOneChip).warnings;
  };
  EXPECT_TRUE(warnings(true).empty());
  ASSERT_EQ(warnings(false).size(), 1u);
  EXPECT_EQ(warnings(false)[0].kind, "guessed_cost");
}

// What is made when it is wanted must not be made in one breath: a chain of any length is timed.
TEST(Region, AChainMayBeLong) {
  constexpr int kLinks = 2000;
  const double ns = cycles([](Kernel& k) {
    const Ref a = k.vmem(Elem::kF32, {8, 128});
    Vec x = a.load();
    for (int n = 0; n < kLinks; ++n)
      x = concat({slice(x, {1, 0}, {7, 128}), slice(x, {0, 0}, {1, 128})}, 0) + 1.0;
    a.store(x);
  });
  EXPECT_GT(ns, kLinks * 4.0);  // a rotation and a sum at least
}

TEST(Region, WhatIsFreeCostsNothing) {
  const auto ns = [](const IsFree& is_free) {
    Kernel k("free");
    k.scope([&] {
      const Ref a = k.vmem(Elem::kF32, {64, 1024}), b = k.vmem(Elem::kF32, {64, 1024});
      b.store(sin(a.load()) + 1.0);
    });
    const auto program = k.finish();
    const auto kernel = TimedKernel::create(program->module, program->call, is_free);
    return kernel->predict(place(kOneChip, 1), {}, {.parameters = round_numbers()})->ns;
  };
  const double all = ns(nullptr);
  const double without = ns([](const ir::Op& op) { return op.code == ir::OpCode::kMathSin; });
  EXPECT_GT(all, 64 * 93 / 4);  // registers, instructions, four a cycle
  EXPECT_LT(without, 64 + 20);  // a store per register, two a cycle; loads and sums beside it
}

}  // namespace
}  // namespace gridless::time
