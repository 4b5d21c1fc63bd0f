// Runs with values in which an operand was not given: what is made up may flow through vectors and
// memory, but nothing that is decided by it, or read as a named source, is a proof.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>

#include "gridless/emulate/check/check.h"
#include "gridless/ir/read_program.h"
#include "gridless/lang/kernel.h"
#include "gridless/lang/ops.h"
#include "gridless/lang/source.h"

namespace gridless::lang {
namespace {

using emulate::CheckReport;
using ::testing::IsEmpty;

constexpr int kCores = 2;

// Two i32 operands, of which `ids` is given (zeros) or not; `other` always is. `scalar` makes a
// scalar of them, which is read as a named source and chooses the tile of `y` that is fetched.
struct Program {
  Kernel k{"made_up", kCores};
  Ref ids = k.input("ids", Elem::kI32, {8, 128}), other = k.input("other", Elem::kI32, {8, 128});
  Ref y = k.input("y", Elem::kF32, {16, 8, 128});

  Ref fetched(const Ref& from) {
    const Ref local = k.vmem(from.elem(), from.shape());
    k.copy(from, local, k.dma_sem()).wait();
    return local;
  }
};

using MakeScalar = std::function<Scalar(Program&)>;

CheckReport run(const MakeScalar& scalar, bool given) {
  Program p;
  const Source tile{"tile", 0, 15, {}, false, 1};
  p.k.scope([&] {
    const Scalar id = source(tile, scalar(p), {});
    p.k.copy(p.y.at(id), p.k.vmem(Elem::kF32, {8, 128}), p.k.dma_sem()).wait();
  });
  const auto program = p.k.finish();
  if (!program) {
    ADD_FAILURE() << to_string(program.error());
    return {};
  }
  const std::vector<int32_t> zeros(8 * 128 * kCores);
  const auto bytes = std::as_bytes(std::span(zeros));
  const std::vector<std::span<const std::byte>> inputs = {
      given ? bytes : std::span<const std::byte>(), bytes, {}};
  return emulate::check(program->module, program->call, kCores, inputs).value();
}

void expect_a_proof_only_if_given(const MakeScalar& scalar) {
  const CheckReport with = run(scalar, true);
  EXPECT_TRUE(with.certificate) << to_string(with.diagnostics());
  const CheckReport without = run(scalar, false);
  EXPECT_FALSE(without.certificate);
  EXPECT_TRUE(without.clean()) << to_string(without.diagnostics());
  ASSERT_THAT(without.findings, testing::Not(IsEmpty()));
  for (const Diagnostic& d : without.diagnostics()) EXPECT_EQ(d.kind, "unknown_scalar") << d.str();
}

TEST(MadeUpData, StaysSoThroughAVector) {
  expect_a_proof_only_if_given([](Program& p) { return extract(p.fetched(p.ids).load(), {0, 0}); });
}

TEST(MadeUpData, StaysSoThroughArithmeticWithKnownVectors) {
  expect_a_proof_only_if_given([](Program& p) {
    const Vec v = max(p.fetched(p.other).load() + 1, p.fetched(p.ids).load());
    return extract(min_over(reshape(v, {1, 1024}), 1), {0, 0});
  });
}

TEST(MadeUpData, StaysSoThroughAStoreAndALoad) {
  expect_a_proof_only_if_given([](Program& p) {
    const Ref a = p.k.vmem(Elem::kI32, {8, 128});
    a.store(p.fetched(p.ids).load() + 1);
    return extract(a.load(), {3, 3});
  });
}

TEST(MadeUpData, StaysSoInAMaskThatChoosesWhatIsStored) {
  expect_a_proof_only_if_given([](Program& p) {
    const Ref a = p.fetched(p.other);
    a.store_masked(full(p.k, Elem::kI32, {8, 128}, 3), p.fetched(p.ids).load() > 0);
    return extract(a.load(), {0, 0});
  });
}

TEST(MadeUpData, StaysSoThroughACopyToScalarMemory) {
  expect_a_proof_only_if_given([](Program& p) {
    const Ref a = p.k.vmem(Elem::kI32, {8, 128}), table = p.k.smem(Elem::kI32, {8, 128});
    a.store(p.fetched(p.ids).load());
    p.k.copy(a, table, p.k.dma_sem()).wait();
    return table.get({0, 0});
  });
}

TEST(MadeUpData, StaysSoOnAnotherCore) {
  expect_a_proof_only_if_given([](Program& p) {
    const Ref mine = p.fetched(p.ids), theirs = p.k.vmem(Elem::kI32, {8, 128});
    const Sem sent = p.k.dma_sem(), received = p.k.dma_sem();
    p.k.barrier_all();
    const Copy c = p.k.copy_to(1 - p.k.core(), mine, theirs, sent, received);
    c.wait();
    c.wait_sent();
    return extract(theirs.load(), {0, 0});
  });
}

TEST(MadeUpData, StaysSoThroughTheMxu) {
  expect_a_proof_only_if_given([](Program& p) {
    const Vec x = cast(p.fetched(p.ids).load(), Elem::kF32);
    const Vec product = dot_nt(x, x, zeros(p.k, Elem::kF32, {8, 8}));
    return extract(cast(product, Elem::kI32), {0, 0});
  });
}

// Parts of a buffer are told apart, and a scalar that does not come from the operand is known.
TEST(MadeUpData, DoesNotSpoilWhatStandsBesideIt) {
  const CheckReport report = run(
      [](Program& p) {
        const Ref both = p.k.vmem(Elem::kI32, {16, 128});
        const Sem done = p.k.dma_sem();
        p.k.copy(p.ids, both.slice({0, 0}, {8, 128}), done).wait();
        p.k.copy(p.other, both.slice({8, 0}, {8, 128}), done).wait();
        const Ref a = p.k.vmem(Elem::kI32, {8, 128});
        a.store(both.slice({0, 0}, {8, 128}).load());  // the whole of `a` is made up, then not
        a.store(both.slice({8, 0}, {8, 128}).load());
        return extract(a.load(), {0, 0});
      },
      false);
  EXPECT_TRUE(report.certificate) << to_string(report.diagnostics());
}

// In-place updates of the slots that a table names: of distinct slots clean, of equal ones a race.
// What is made up for the table is zeros.
TEST(MadeUpData, AccusesNobody) {
  const auto run = [](std::optional<std::array<int32_t, 4>> slots) {
    Kernel k("slots");
    const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
    const Ref state = k.inout("state", Elem::kF32, {8, 8, 128});
    k.scope([&] {
      const Ref a = k.vmem(Elem::kF32, {2, 8, 128});
      const Sem in = k.dma_sem(), out = k.dma_sem();
      for (int i = 0; i < 2; ++i) k.copy(state.at(table.get({i})), a.at(i), in).wait();
      const Copy first = k.copy(a.at(0), state.at(table.get({0})), out);
      const Copy second = k.copy(a.at(1), state.at(table.get({1})), out);
      first.wait();
      second.wait();
    });
    const auto program = k.finish();
    EXPECT_TRUE(program) << to_string(program.error());
    std::vector<std::span<const std::byte>> inputs(program->call.operands.size());
    if (slots) inputs[0] = std::as_bytes(std::span(*slots));
    return emulate::check(program->module, program->call, 1, inputs).value();
  };
  EXPECT_TRUE(run({{3, 5, 0, 0}}).certificate);
  EXPECT_FALSE(run({{3, 3, 0, 0}}).clean());
  const CheckReport unknown = run(std::nullopt);
  EXPECT_TRUE(unknown.clean()) << to_string(unknown.diagnostics());
  EXPECT_FALSE(unknown.certificate);
}

// A table says how many tiles there are: with none, nothing is summed, nothing awaited.
TEST(MadeUpData, AccusesNobodyOfTheWayItTook) {
  const auto run = [](std::optional<int32_t> tiles, bool awaited) {
    Kernel k("tiles");
    const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
    const Ref x = k.input("x", Elem::kF32, {8, 128}), y = k.output("y", Elem::kF32, {8, 128});
    k.scope([&] {
      const Ref a = k.vmem(Elem::kF32, {8, 128}), sum = k.vmem(Elem::kF32, {8, 128});
      const Sem in = k.dma_sem(), out = k.dma_sem(), ready = k.sem();
      k.signal(ready, 1);
      k.copy(x, a, in);
      k.loop(0, table.get({0}), [&](Scalar i) {
        k.if_(i == 0, [&] {
          k.wait(x, a, in);
          if (awaited) k.wait(ready, 1);
          sum.store(a.load());
        });
      });
      k.copy(sum, y, out).wait();
    });
    const auto program = k.finish();
    EXPECT_TRUE(program) << to_string(program.error());
    std::vector<std::span<const std::byte>> inputs(program->call.operands.size());
    const std::array<int32_t, 4> given = {tiles.value_or(0), 0, 0, 0};
    if (tiles) inputs[0] = std::as_bytes(std::span(given));
    return emulate::check(program->module, program->call, 1, inputs).value();
  };
  EXPECT_TRUE(run(1, true).clean()) << to_string(run(1, true).diagnostics());
  EXPECT_FALSE(run(1, false).clean()) << "a semaphore is left";
  EXPECT_FALSE(run(0, true).clean()) << "given as zero it is the kernel's fault";
  const CheckReport unknown = run(std::nullopt, true);
  EXPECT_TRUE(unknown.clean()) << to_string(unknown.diagnostics());
  EXPECT_FALSE(unknown.certificate);
  EXPECT_THAT(to_string(unknown.diagnostics()), testing::HasSubstr("went by a value"));
}

// The blocks of a grid's windows come from a table.
TEST(MadeUpData, DecidesNoWindow) {
  auto program = ir::read_program(std::string(GRIDLESS_TEST_DATA) +
                                  "/corpus/p23_scalar_prefetch_grid/module.mlirbc");
  ASSERT_TRUE(program) << to_string(program.error());
  const std::vector<int32_t> table = {3, 0, 2, 1};
  for (const bool given : {true, false}) {
    std::vector<std::span<const std::byte>> inputs(program->call.operands.size());
    if (given) inputs[0] = std::as_bytes(std::span(table));
    const CheckReport report = emulate::check(program->module, program->call, 1, inputs).value();
    EXPECT_EQ(report.certificate, given) << to_string(report.diagnostics());
    EXPECT_TRUE(report.clean());
  }
}

}  // namespace
}  // namespace gridless::lang
