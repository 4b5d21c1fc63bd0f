// What the TPU compiler takes without a word: each is a finding here. (Waits and copies at the
// wrong time are in copies_test.cc, the rest of the list here.)
#include "tests/race/race_case.h"

namespace gridless::lang {
namespace {

constexpr int64_t kRows = 8, kColumns = 128;

void store_ones(Kernel& k, const Ref& a) { a.store(k.constant(a.shape(), Elem::kF32, 1)); }

// Writes `y` by way of a buffer of its own.
void write_ones(Kernel& k, const Ref& y) {
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    store_ones(k, a);
    k.copy(a, y, done).wait();
  });
}

void wait_without_start(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    if (fixed) k.copy(x, a, in);
    HERE k.wait(x, a, in);
    k.copy(a, y, out).wait();
  });
}

void never_signalled(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Sem ready = k.sem();
    if (fixed) k.signal(ready);
    HERE k.wait(ready);
  });
  write_ones(k, y);
}

// The wait names half of what comes.
void wait_for_too_few_bytes(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    k.copy(x, a, in);
    const Ref named = fixed ? a : a.rows(0, kRows / 2);
    HERE k.wait(named, named, in);
    k.copy(a, y, out).wait();
  });
}

void two_copies_into_one_buffer(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {2, kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sems in = k.dma_sems(2);
    const Sem out = k.dma_sem();
    const Copy first = k.copy(x.at(0), a, in.at(0));
    if (fixed) first.wait();
    HERE const Copy second = k.copy(x.at(1), a, in.at(1));
    if (!fixed) first.wait();
    second.wait();
    k.copy(a, y, out).wait();
  });
}

// The slot's next block comes while the last one is still to be read.
void refilled_before_use(Kernel& k, bool fixed, int& line) {
  const Ref x = k.input("x", Elem::kF32, {2, kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {2, kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns}), b = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    k.copy(x.at(0), a, in).wait();
    if (fixed) {
      b.store(a.load());
      k.copy(x.at(1), a, in).wait();
    } else {
      const Copy next = k.copy(x.at(1), a, in);
      HERE const Vec v = a.load();
      b.store(v);
      next.wait();
    }
    k.copy(b, y.at(0), out).wait();
    k.copy(a, y.at(1), out).wait();
  });
}

// Semaphore 5 of 4.
void semaphore_out_of_range(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sems done = k.dma_sems(4);
    store_ones(k, a);
    const Scalar which = table.get({Scalar(0)});
    HERE const Sem one = done.at(fixed ? which % 4 : which);
    k.copy(a, y, one).wait();
  });
}

void vector_load_out_of_range(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {2 * kRows, kColumns}),
              b = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    store_ones(k, a);
    const Scalar row = table.get({Scalar(0)});
    HERE const Vec v = a.load({fixed ? row % 8 : row, Scalar(0)}, {kRows, kColumns});
    b.store(v);
    k.copy(b, y, done).wait();
  });
}

void vector_store_out_of_range(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, {2 * kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {2 * kRows, kColumns});
    const Sem done = k.dma_sem();
    store_ones(k, a);
    const Scalar row = table.get({Scalar(0)});
    const Vec v = k.constant({kRows, kColumns}, Elem::kF32, 2);
    HERE a.store(v, {fixed ? row % 8 : row, Scalar(0)});
    k.copy(a, y, done).wait();
  });
}

// A loop as long as a word of scratch that nobody wrote.
void scratch_decides(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref n = k.smem(Elem::kI32, {1});
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    store_ones(k, a);
    if (fixed) n.set({Scalar(0)}, 3);
    HERE const Scalar rounds = n.get({Scalar(0)});
    k.loop(0, rounds % 8, [&](Scalar) { a.store(a.load() + 1.0); });
    k.copy(a, y, done).wait();
  });
}

void output_never_written(Kernel& k, bool fixed, int& line) {
  HERE const Ref x = k.input("x", Elem::kF32, {kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    k.copy(x, a, done).wait();
    if (fixed) k.copy(a, y, done).wait();
  });
}

void unused_scratch_too_large(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  write_ones(k, y);
  k.scope([&] { HERE k.vmem(Elem::kF32, {fixed ? 64 : 136, 1024, 128}); });
}

void endless_loop(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  write_ones(k, y);
  HERE k.while_(0, [&](Scalar i) { return i < 8; }, [&](Scalar i) { return fixed ? i + 1 : i; });
}

// Lanes 64 to 191 of 256.
void copy_between_lane_tiles(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {kRows, 2 * kColumns});
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    const Scalar lane = k.assume_multiple(table.get({Scalar(0)}) * (fixed ? 2 : 1), 128);
    const Ref part = x.slice({Scalar(0), lane}, {kRows, kColumns});
    HERE const Copy c = k.copy(part, a, done);
    c.wait();
    k.copy(a, y, done).wait();
  });
}

// Rows 4 to 11 of bf16, which come in groups of 8.
void copy_between_row_tiles(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kBf16, {3 * kRows, kColumns});
  const Ref y = k.output("y", Elem::kBf16, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kBf16, {kRows, kColumns});
    const Sem done = k.dma_sem();
    const Scalar row = k.assume_multiple(table.get({Scalar(0)}) * 2 - (fixed ? 0 : 1), 8);
    const Ref part = x.slice({row, Scalar(0)}, {kRows, kColumns});
    HERE const Copy c = k.copy(part, a, done);
    c.wait();
    k.copy(a, y, done).wait();
  });
}

// The promise is broken, although what follows from it lies on a tile.
void broken_promise(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {2, 8, 128}), y = k.output("y", Elem::kF32, {8, 128});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {8, 128});
    const Sem done = k.dma_sem();
    HERE const Scalar row = k.assume_multiple(table.get({Scalar(0)}), fixed ? 4 : 8);
    k.copy(x.at(row / 8), a, done).wait();
    k.copy(a, y, done).wait();
  });
}

void load_between_lane_tiles(Kernel& k, bool fixed, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, 2 * kColumns}),
              b = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem done = k.dma_sem();
    store_ones(k, a);
    const Scalar lane = k.assume_multiple(table.get({Scalar(0)}) * (fixed ? 2 : 1), 128);
    HERE const Vec v = a.load({Scalar(0), lane}, {kRows, kColumns});
    b.store(v);
    k.copy(b, y, done).wait();
  });
}

// Rows of 32 bits lie where they like: row 3, one row.
void rows_of_floats(Kernel& k, bool, int& line) {
  const Ref table = k.input("table", Elem::kI32, {4}, Space::kSmem);
  const Ref x = k.input("x", Elem::kF32, {2 * kRows, kColumns});
  const Ref y = k.output("y", Elem::kF32, {1, kColumns});
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {1, kColumns});
    const Sem done = k.dma_sem();
    HERE k.copy(x.rows(table.get({Scalar(0)}), 1), a, done).wait();
    k.copy(a, y, done).wait();
  });
}

// Core 0 takes a second barrier, the others do not.
void barrier_of_one(Kernel& k, bool fixed, int& line) {
  const Ref y = k.output("y", Elem::kF32, {kRows, kColumns});
  k.barrier_all();
  const Sem barrier = k.barrier_sem();
  const auto again = [&] {
    for (int d = 1; d < k.cores(); ++d) k.signal(barrier, 1, (k.core() + d) % k.cores());
    HERE k.wait(barrier, k.cores() - 1);
  };
  if (fixed) {
    again();
  } else {
    k.if_(k.core() == 0, again);
  }
  write_ones(k, y);
}

const RaceCase kCases[] = {
    {"WaitWithoutStart", "deadlock", 1, wait_without_start},
    {"NeverSignalled", "deadlock", 1, never_signalled},
    {"WaitForTooFewBytes",
     "wait_bytes_mismatch",
     1,
     wait_for_too_few_bytes,
     {},
     false,
     {"race", "semaphore_not_zero", "use_after_scope", "dma_in_flight_at_end"}},
    {"TwoCopiesIntoOneBuffer", "race", 1, two_copies_into_one_buffer},
    {"RefilledBeforeUse", "race", 1, refilled_before_use},
    {"SemaphoreOutOfRange", "out_of_bounds", 1, semaphore_out_of_range, {5, 0, 0, 0}},
    {"VectorLoadOutOfRange", "out_of_bounds", 1, vector_load_out_of_range, {9, 0, 0, 0}},
    {"VectorStoreOutOfRange", "out_of_bounds", 1, vector_store_out_of_range, {9, 0, 0, 0}},
    {"ScratchDecides", "uninitialised_read", 1, scratch_decides},
    {"UnusedScratchTooLarge", "capacity", 1, unused_scratch_too_large},
    {.name = "EndlessLoop",
     .kind = "step_limit",
     .cores = 1,
     .build = endless_loop,
     .max_steps = 100'000},
    {"CopyBetweenLaneTiles", "misaligned", 1, copy_between_lane_tiles, {64, 0, 0, 0}},
    {"CopyBetweenRowTiles", "misaligned", 1, copy_between_row_tiles, {4, 0, 0, 0}},
    {"BrokenPromise", "misaligned", 1, broken_promise, {4, 0, 0, 0}},
    {"LoadBetweenLaneTiles", "misaligned", 1, load_between_lane_tiles, {64, 0, 0, 0}},
    {"BarrierOfOne", "collective_mismatch", 3, barrier_of_one, {}, false, {"deadlock"}},
};
RACE_SUITE(Silent, kCases);

ir::Program built(void (*build)(Kernel&, bool, int&), int& line) {
  Kernel k("silent", 1);
  build(k, true, line);
  return std::move(k.finish().value());
}

std::vector<std::string> kinds_of(const ir::Program& program) {
  const std::vector<std::span<const std::byte>> none(program.call.operands.size());
  const auto report = emulate::check(program.module, program.call, 1, none);
  std::vector<std::string> out;
  for (const Diagnostic& d : report->diagnostics()) out.push_back(d.kind);
  EXPECT_FALSE(report->certificate);
  return out;
}

// The first op of that code in the program.
ir::Op& first_op(ir::Program& program, ir::OpCode code) {
  ir::Op* found = nullptr;
  ir::walk(*program.module.top, [&](const ir::Op& op) {
    if (!found && op.code == code) found = const_cast<ir::Op*>(&op);
  });
  return *found;
}

TEST(SilentFloatRows, AreNotAccused) {
  int line = 0;
  ir::Program program = built(rows_of_floats, line);
  const int32_t table[] = {3, 0, 0, 0};
  std::vector<std::span<const std::byte>> inputs(2);
  inputs[0] = std::as_bytes(std::span(table));
  const auto report = emulate::check(program.module, program.call, 1, inputs);
  EXPECT_TRUE(report->certificate) << to_string(report->diagnostics());
}

TEST(SilentOutput, NeverWrittenIsAWarning) {
  for (const bool fixed : {false, true}) {
    Kernel k("silent", 1);
    int line = 0;
    output_never_written(k, fixed, line);
    const auto program = k.finish();
    ASSERT_TRUE(program);
    const auto report = emulate::check(program->module, program->call, 1,
                                       std::vector<std::span<const std::byte>>(1));
    EXPECT_EQ(report->findings.size(), fixed ? 0u : 1u) << to_string(report->diagnostics());
    EXPECT_TRUE(report->clean());
    if (fixed) continue;
    EXPECT_EQ(report->findings[0].diagnostic.kind, "uninitialised_read");
    EXPECT_THAT(report->findings[0].diagnostic.message, testing::HasSubstr("result 0 (y)"));
  }
}

// Static accesses beyond the ref, which the language refuses, put in afterwards.
TEST(SilentStaticLoad, BeyondTheRefIsFound) {
  int line = 0;
  const auto broken = [&](int64_t row, int64_t column) {
    ir::Program program = built(vector_load_out_of_range, line);
    ir::Op& load = first_op(program, ir::OpCode::kVectorLoad);
    const auto constant = [&](int64_t value) {
      ir::Block& block = *load.parent;
      ir::Op* made =
          ir::append_op(block, ir::OpCode::kArithConstant, {}, {ir::Type::index()},
                        {{"value", ir::Attr::integer(value, ir::Type::index())}}, load.loc);
      std::rotate(block.ops.begin(), block.ops.end() - 1, block.ops.end());
      return made->result();
    };
    load.operands[1] = constant(row);
    load.operands[2] = constant(column);
    return kinds_of(program);
  };
  EXPECT_THAT(broken(16, 0), testing::Contains("out_of_bounds"));  // row 16 of 16
  EXPECT_THAT(broken(0, 64), testing::Contains("out_of_bounds"));  // lanes 64 to 191 of 128
  // A vector of more rows than the ref has.
  ir::Program program = built(vector_load_out_of_range, line);
  ir::Op& alloca = first_op(program, ir::OpCode::kMemrefAlloca);
  alloca.results[0]->type = alloca.results[0]->type.with_shape({4, kColumns});
  EXPECT_THAT(kinds_of(program), testing::Contains("out_of_bounds"));
}

TEST(SilentOperand, MismatchIsFound) {
  int line = 0;
  const auto with = [&](Elem e, ir::Shape shape) {
    ir::Program program = built(wait_without_start, line);
    program.call.operands[0].type = ir::Type::memref(std::move(shape), e, Space::kHbm);
    return kinds_of(program);
  };
  const testing::Matcher<std::vector<std::string>> mismatch =
      testing::ElementsAre("shape_mismatch");
  EXPECT_THAT(with(Elem::kF32, {16, 128}), mismatch);
  EXPECT_THAT(with(Elem::kF32, {128, 8}), mismatch);
  EXPECT_THAT(with(Elem::kF32, {4, 128}), mismatch);
  EXPECT_THAT(with(Elem::kF32, {1024}), mismatch);
  EXPECT_THAT(with(Elem::kI32, {8, 128}), mismatch);
  EXPECT_THAT(with(Elem::kBf16, {8, 128}), mismatch);
  ir::Program more = built(wait_without_start, line);
  more.call.results.push_back(more.call.results[0]);
  EXPECT_THAT(kinds_of(more), mismatch);
}

TEST(SilentModule, ThatIsNoKernelIsFound) {
  int line = 0;
  ir::Program empty = built(wait_without_start, line);
  empty.module = ir::Module();
  EXPECT_THAT(kinds_of(empty), testing::ElementsAre("invalid_ir"));
  ir::Program wrong = built(wait_without_start, line);
  first_op(wrong, ir::OpCode::kTpuWaitDma).operands.pop_back();
  EXPECT_THAT(kinds_of(wrong), testing::Contains("invalid_ir"));
}

TEST(SilentCollective, IdThatNothingUsesIsAWarning) {
  int line = 0;
  ir::Program program = built(never_signalled, line);
  program.call.collective_id = 3;
  const auto report = emulate::check(program.module, program.call, 1, {});
  ASSERT_EQ(report->findings.size(), 1u);
  EXPECT_EQ(report->findings[0].diagnostic.kind, "collective_mismatch");
  EXPECT_TRUE(report->clean());
}

}  // namespace
}  // namespace gridless::lang
