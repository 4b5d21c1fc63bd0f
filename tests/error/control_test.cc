// Scalars, conditions, loops, and the life of a kernel.
#include "tests/error/error_case.h"

namespace gridless::lang {
namespace {

template <void (*kBody)(Kernel&, const Buffers&, int&)>
void in_scope(Kernel& k, int& line) {
  with_buffers(k, kBody, line);
}

void loop_carries(Kernel& k, const Buffers& m, int& line) {
  MISTAKE(void) k.loop(0, 4, m.a.load(), [&](Scalar, Vec v) { return cast(v, Elem::kBf16); });
}
void branches_differ(Kernel& k, const Buffers& m, int& line) {
  const Scalar c = m.table.get({0}) > 0;
  MISTAKE(void) k.choose(c, [&] { return m.a.load(); }, [&] { return m.half.load(); });
}
void condition_element(Kernel& k, const Buffers& m, int& line) {
  const Scalar n = m.table.get({0});
  MISTAKE k.if_(n, [] {});
}
void constant_while(Kernel& k, const Buffers&, int& line) {
  MISTAKE(void) k.while_(0, [](Scalar) { return Scalar(1); }, [](Scalar i) { return i + 1; });
}
void mixed_scalars(Kernel&, const Buffers& m, int& line) {
  const Scalar n = m.table.get({0});
  MISTAKE(void)(n * 0.5);
}
void float_remainder(Kernel&, const Buffers& m, int& line) {
  const Scalar n = cast(m.table.get({0}), Elem::kF32);
  MISTAKE(void)(n % 2.0);
}
void division_by_zero(Kernel&, const Buffers& m, int& line) {
  const Scalar n = m.table.get({0});
  MISTAKE(void)(n / 0);
}
void float_index(Kernel&, const Buffers& m, int& line) {
  const Scalar n = cast(m.table.get({0}), Elem::kF32);
  MISTAKE(void) m.table.get({n});
}
void half_a_row(Kernel& k, const Buffers& m, int& line) {
  MISTAKE k.loop(0, 2.5, [&](Scalar) { (void)m; });
}
void require_is_false(Kernel& k, const Buffers&, int& line) {
  MISTAKE k.require(1 > 2, "rows must be even");
}
void no_such_mxu(Kernel& k, const Buffers&, int& line) { MISTAKE(void) mxu_pop(k, 8, 2, 0); }
void composite_operand(Kernel& k, const Buffers& m, int& line) {
  MISTAKE k.composite("rms_norm", {m.a, m.b}, {}, [&] { m.a.store(m.a.load()); });
}
void composite_capture(Kernel& k, const Buffers& m, int& line) {
  MISTAKE k.composite("rms_norm", {m.a}, {}, [&] { m.a.store(m.b.load()); });
}
void operand_shape(Kernel& k, int& line) { MISTAKE k.input("x", Elem::kF32, {0, 128}); }

// Only the verifier sees these: the op was spelled out by hand.
void by_hand(Kernel& k, const Buffers& m, int& line) {
  const Where w = Where::current();
  line = static_cast<int>(w.line());
  k.emit1(ir::OpCode::kArithAddf, {m.a.load().value(), m.half.load().value()},
          ir::Type::vector({16, 256}, Elem::kF32),
          {{"fastmath", ir::Attr::opaque("#arith.fastmath<none>")}}, w);
}
void without_attribute(Kernel& k, const Buffers&, int& line) {
  const Where w = Where::current();
  line = static_cast<int>(w.line());
  k.emit1(ir::OpCode::kTpuIota, {}, ir::Type::vector({8, 128}, Elem::kI32), {}, w);
}

const ErrorCase kCases[] = {
    {"LoopCarries", "shape_mismatch",
     "the loop carries vector<16x256xf32> but its body gives vector<16x256xbf16>",
     "types it started with", in_scope<loop_carries>},
    {"BranchesDiffer", "shape_mismatch",
     "the branches of choose() give vector<16x256xf32> and vector<16x256xbf16>", "one type",
     in_scope<branches_differ>},
    {"ConditionElement", "shape_mismatch", "a condition of i32", "compare it",
     in_scope<condition_element>},
    {"ConstantWhile", "invalid_ir", "the condition of while_ is the constant 1",
     "the value the loop carries", in_scope<constant_while>},
    {"MixedScalars", "shape_mismatch", "a scalar of i32 in arithmetic on f32", "cast() one",
     in_scope<mixed_scalars>},
    {"FloatRemainder", "shape_mismatch", "a remainder of f32", "cast() to i32",
     in_scope<float_remainder>},
    {"DivisionByZero", "invalid_ir", "an integer division by zero", "undefined on the chip",
     in_scope<division_by_zero>},
    {"FloatIndex", "shape_mismatch", "a scalar of f32 where an index is needed", "cast() it",
     in_scope<float_index>},
    {"HalfARow", "shape_mismatch", "the number 2.5 where an i32 is needed", "whole number",
     in_scope<half_a_row>},
    {"RequireIsFalse", "invalid_ir", "rows must be even", "require() is false",
     in_scope<require_is_false>},
    {"NoSuchMxu", "out_of_bounds", "MXU 2", "0 and 1", in_scope<no_such_mxu>},
    {"CompositeOperand", "invalid_ir", "operand 1 of composite rms_norm is not used",
     "only what the body uses", in_scope<composite_operand>},
    {"CompositeCapture", "invalid_ir", "uses 2 values from outside, its contract lists 1",
     "add the missing", in_scope<composite_capture>},
    {"OperandShape", "shape_mismatch", "operand x has the shape 0x128", "at least 1",
     operand_shape},
    {"ByHand", "invalid_ir", "arith.addf", "", in_scope<by_hand>},
    {"WithoutAttribute", "invalid_ir", "dimensions", "", in_scope<without_attribute>},
};
ERROR_SUITE(Control, kCases);

TEST(KernelLife, HandlesOfTwoKernelsDoNotMix) {
  Kernel a("a"), b("b");
  const Ref x = a.input("x", Elem::kF32, {8, 128});
  const Ref y = b.output("y", Elem::kF32, {8, 128});
  int line = 0;
  b.scope([&] {
    const Sem done = b.dma_sem();
    MISTAKE b.copy(x, y, done).wait();
  });
  const auto program = b.finish();
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error()[0].kind, "invalid_ir");
  EXPECT_THAT(program.error()[0].message, testing::HasSubstr("a ref of another kernel"));
  EXPECT_EQ(program.error()[0].where.line, line);
}

TEST(KernelLife, FinishClosesTheProgram) {
  Kernel k("k");
  const Ref x = k.input("x", Elem::kF32, {8, 128});
  const auto program = k.finish();
  ASSERT_TRUE(program) << to_string(program.error());
  int line = 0;
  MISTAKE(void) k.smem(Elem::kI32, {4});
  const auto again = k.finish();
  const int second = __LINE__ - 1;
  ASSERT_FALSE(again);
  ASSERT_EQ(again.error().size(), 2u);
  EXPECT_THAT(again.error()[0].message, testing::HasSubstr("an operation after finish()"));
  EXPECT_EQ(again.error()[0].where.line, line);
  EXPECT_THAT(again.error()[1].message, testing::HasSubstr("finish() was called twice"));
  EXPECT_EQ(again.error()[1].where.line, second);
  (void)x;
}

}  // namespace
}  // namespace gridless::lang
