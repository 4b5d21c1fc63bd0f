// Copies from operands into VMEM that the CPU engine does not make at once (reads go to the operand
// instead): whatever the program does to the target afterwards, results are those of real copies.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "gridless/base/numerics.h"
#include "gridless/blocks/activations.h"
#include "tests/cpu/random.h"
#include "tests/cpu/run_program.h"

namespace gridless::cpu {
namespace {

using namespace gridless::lang;  // NOLINT: kernels read in the language

constexpr int64_t kRows = 16, kTiles = 4;

// A kernel over x f32 [4 tiles of 16, 128], h bf16 of the same shape, a table of eight numbers that
// are known at run time only, and an output of two tiles.
struct Io {
  Kernel& k;
  Ref x, h, table, y;
  Sem done;

  Ref tile(Scalar i) const { return x.rows(i * kRows, kRows); }
  Ref buffer() const { return k.vmem(Elem::kF32, {kRows, 128}); }
  void copy(Ref from, Ref to) const { k.copy(from, to, done).wait(); }
  void out(int64_t tile_index, Vec v) const {
    const Ref staged = buffer();
    staged.store(v);
    copy(staged, y.rows(tile_index * kRows, kRows));
  }
};

void check(const std::function<void(const Io&)>& body, int cores = 1,
           std::vector<int32_t> table = {0, 1, 2, 3, 4, 5, 6, 7}) {
  Kernel k("put_off", cores);
  Io io{k,
        k.input("x", Elem::kF32, {kTiles * kRows, 128}),
        k.input("h", Elem::kBf16, {kTiles * kRows, 128}),
        k.input("table", Elem::kI32, {8}, Space::kSmem),
        k.output("y", Elem::kF32, {2 * kRows, 128}),
        {}};
  if (cores > 1) k.barrier_all();
  k.scope([&] {
    io.done = k.dma_sem();
    body(io);
  });
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  PerCoreBytes inputs;
  for (int c = 0; c < cores; ++c) {
    Random random(static_cast<uint32_t>(c) + 1);
    std::vector<float> x(kTiles * kRows * 128);
    for (float& v : x) v = random.normal();
    std::vector<uint16_t> h(x.size());
    for (uint16_t& v : h) v = to_bf16(random.normal()).bits;
    inputs.push_back({bytes_of(x), bytes_of(h), bytes_of(table)});
  }
  for (const int launches : {1, 2}) {
    const Ran expected = run_emulated(*program, inputs, launches);
    for (const int threads : {1, 2}) {
      EXPECT_TRUE(
          same_results(expected, run_cpu(*program, inputs, {.threads = threads}, launches)));
      EXPECT_TRUE(same_results(
          expected,
          run_cpu(*program, inputs, {.threads = threads, .max_unrolled_steps = 0}, launches)));
    }
  }
}

TEST(PutOffCopies, AreNotMadeWhereNothingNeedsThem) {
  Kernel k("view");
  const Ref x = k.input("x", Elem::kF32, {16, 128}), y = k.output("y", Elem::kF32, {16, 128});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {16, 128}), b = k.vmem(Elem::kF32, {16, 128});
    const Sem done = k.dma_sem();
    k.copy(x, a, done).wait();
    b.store(a.load() * 2.0);
    k.copy(b, y, done).wait();
  });
  const auto program = k.finish();
  const Ran ran = run_cpu(*program, {{bytes_of(std::vector<float>(16 * 128, 1.5f))}});
  EXPECT_EQ(ran.results[0][0], bytes_of(std::vector<float>(16 * 128, 3.0f)));
  EXPECT_EQ(ran.stats.views, 1);
  EXPECT_EQ(ran.stats.copies, 1);
}

TEST(PutOffCopies, TargetOverwrittenByACopy) {
  check([](const Io& io) {
    const Ref a = io.buffer();
    io.copy(io.tile(0), a);
    const Vec first = a.load();
    io.copy(io.tile(1), a);
    io.out(0, first);
    io.out(1, a.load());
  });
}

TEST(PutOffCopies, TargetPartlyOverwrittenByACopy) {
  check([](const Io& io) {
    const Ref a = io.buffer();
    io.copy(io.tile(0), a);
    io.copy(io.x.rows(20, 8), a.rows(4, 8));
    io.out(0, a.load());
    // The inner part again, then a copy over its end and beyond.
    io.copy(io.x.rows(40, 8), a.rows(4, 8));
    io.copy(io.x.rows(50, 5), a.rows(9, 5));
    io.out(1, a.load());
  });
}

TEST(PutOffCopies, TargetOverwrittenByAStore) {
  check([](const Io& io) {
    const Ref a = io.buffer(), b = io.buffer();
    io.copy(io.tile(0), a);
    io.copy(io.tile(1), b);
    a.store(b.load({0, 0}, {8, 128}), {8, 0});
    io.out(0, a.load());
    b.store_masked(a.load(), iota(io.k, {kRows, 128}, 1) < 7);
    io.out(1, b.load());
  });
}

TEST(PutOffCopies, ReadThroughSlicesAndShapes) {
  check([](const Io& io) {
    const Ref ring = io.k.vmem(Elem::kF32, {3, kRows, 128});
    for (int i = 0; i < 3; ++i) io.copy(io.tile(i), ring.at(i));
    // Within one copy, and across the border of two.
    const Vec inner = ring.at(1).load({4, 0}, {8, 128});
    const Vec across = ring.reshape({3 * kRows, 128}).load({12, 0}, {8, 128});
    io.out(0, concat({inner, across}, 0));
    io.out(1, ring.at(2).load());
  });
}

TEST(PutOffCopies, ReadThroughABitcast) {
  check([](const Io& io) {
    const Ref a = io.k.vmem(Elem::kBf16, {2 * kRows, 128});
    io.copy(io.h.rows(kRows, 2 * kRows), a);
    const Ref words = a.bitcast(Elem::kI32);
    io.out(0, bitcast(words.load(), Elem::kF32));
    a.store(a.load({0, 0}, {16, 128}), {16, 0});
    io.out(1, bitcast(words.load(), Elem::kF32));
  });
}

TEST(PutOffCopies, UnderADataDependentBranch) {
  for (const int32_t taken : {0, 1}) {
    check(
        [](const Io& io) {
          const Ref a = io.buffer();
          io.copy(io.tile(0), a);
          io.k.if_(io.table.get({0}) == 1, [&] { io.copy(io.tile(1), a); });
          io.out(0, a.load());
          io.copy(io.tile(2), a);
          io.k.if_(
              io.table.get({0}) == 1, [&] { a.store(a.load({0, 0}, {8, 128}), {8, 0}); },
              [&] { io.copy(io.x.rows(48, 4), a.rows(2, 4)); });
          io.out(1, a.load());
        },
        1, {taken, 0, 0, 0, 0, 0, 0, 0});
  }
}

TEST(PutOffCopies, InLoopsWithRunTimeBounds) {
  for (const int32_t trips : {0, 1, 3}) {
    check(
        [](const Io& io) {
          const Ref a = io.buffer(), b = io.buffer();
          io.copy(io.tile(3), a);
          io.copy(io.tile(3), b);
          const Vec total = io.k.loop(0, io.table.get({0}), b.load(), [&](Scalar i, Vec sum) {
            const Vec before = a.load();  // of the copy before the loop, then of the last iteration
            io.copy(io.tile(i), a);
            return sum * 0.5 + before + a.load();
          });
          io.out(0, total);
          io.out(1, a.load() + b.load());
        },
        1, {trips, 0, 0, 0, 0, 0, 0, 0});
  }
}

TEST(PutOffCopies, InAWhileLoop) {
  check([](const Io& io) {
    const Ref a = io.buffer();
    io.copy(io.tile(0), a);
    io.k.while_(
        io.table.get({1}), [&](Scalar i) { return i < io.table.get({3}); },
        [&](Scalar i) {
          io.copy(io.tile(i), a);
          return i + 1;
        });
    io.out(0, a.load());
    io.out(1, a.load() * 2.0);
  });
}

TEST(PutOffCopies, ReadThroughARefMadeBeforeTheNextCopy) {
  check([](const Io& io) {
    const Ref a = io.buffer();
    io.copy(io.tile(0), a);
    const Ref part = a.rows(io.table.get({4}), 8);  // where it is is known at run time only
    const Vec old = part.load();
    io.copy(io.tile(1), a);
    io.out(0, concat({old, part.load()}, 0));
    io.out(1, a.load());
  });
}

TEST(PutOffCopies, WrittenThroughARunTimeRef) {
  check([](const Io& io) {
    const Ref a = io.buffer();
    io.copy(io.tile(0), a);
    const Ref part = a.rows(io.table.get({4}), 8);
    part.store(full(io.k, Elem::kF32, {8, 128}, 2.5));
    io.out(0, a.load());
    io.copy(io.tile(1), a);
    io.copy(io.x.rows(40, 8), a.rows(io.table.get({2}), 8));
    io.out(1, a.load());
  });
}

TEST(PutOffCopies, CopiedOnBeforeTheFirstTargetChanges) {
  check([](const Io& io) {
    const Ref a = io.buffer(), b = io.buffer();
    io.copy(io.tile(0), a);
    io.copy(a, b);
    io.copy(io.tile(1), a);
    b.store(a.load({0, 0}, {8, 128}), {0, 0});
    io.copy(b, io.y.rows(0, kRows));
    io.copy(a, io.y.rows(kRows, kRows));
  });
}

TEST(PutOffCopies, IntoABufferThatAnotherCoreWrites) {
  check(
      [](const Io& io) {
        Kernel& k = io.k;
        const Ref a = io.buffer(), b = io.buffer();
        const Sem sent = k.dma_sem(), received = k.dma_sem();
        io.copy(io.tile(0), a);
        io.copy(io.tile(1), b);
        k.barrier_all();  // everybody's tile is there before the neighbour's part comes over it
        const Copy c = k.copy_to((k.core() + 1) % 2, b.rows(0, 8), a.rows(8, 8), sent, received);
        k.wait_received(a.rows(8, 8), received);
        c.wait_sent();
        io.out(0, a.load());
        io.out(1, b.load());
      },
      2);
}

TEST(PutOffCopies, UpdatedInPlaceByAComposite) {
  check([](const Io& io) {
    Kernel& k = io.k;
    const Ref x = k.vmem(Elem::kF32, {1, kRows, 128}), y = k.vmem(Elem::kF32, {1, kRows, 128});
    io.copy(io.tile(0), x.at(0));
    io.copy(io.tile(2), y.at(0));
    blocks::add_into(x, y);
    io.out(0, x.reshape({kRows, 128}).load());
    io.out(1, y.reshape({kRows, 128}).load());
  });
}

}  // namespace
}  // namespace gridless::cpu
