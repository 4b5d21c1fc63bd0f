// Shapes and elements that do not fit.
#include "tests/error/error_case.h"

namespace gridless::lang {
namespace {

template <void (*kBody)(Kernel&, const Buffers&, int&)>
void in_scope(Kernel& k, int& line) {
  with_buffers(k, kBody, line);
}

void elements(Kernel&, const Buffers& m, int& line) {
  MISTAKE m.a.store(m.a.load() + m.half.load());
}
void broadcast_shapes(Kernel& k, const Buffers& m, int& line) {
  const Vec row = zeros(k, Elem::kF32, {1, 128});
  MISTAKE m.a.store(m.a.load() * row);
}
void operands_on_two_lines(Kernel& k, const Buffers& m, int& line) {
  const Vec row = zeros(k, Elem::kF32, {1, 128});
  const Vec v = m.a.load()
                // The operator stands with its right operand.
                - row;
  line = __LINE__ - 1;
  m.a.store(v);
}
void scalar_element(Kernel&, const Buffers& m, int& line) {
  MISTAKE m.a.store(m.a.load() * m.table.get({0}));
}
void division_of_ints(Kernel& k, const Buffers&, int& line) {
  const Vec lane = iota(k, {8, 128}, 1);
  MISTAKE(void)(lane / lane);
}
void bits_of_floats(Kernel&, const Buffers& m, int& line) { MISTAKE(void)(m.a.load() & 1); }
void exp_of_ints(Kernel& k, const Buffers&, int& line) {
  const Vec lane = iota(k, {8, 128}, 1);
  MISTAKE(void) exp(lane);
}
void store_of_wide(Kernel&, const Buffers& m, int& line) { MISTAKE m.half.store(m.a.load()); }
void reshape_count(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) reshape(m.a.load(), {16, 128});
}
void reduce_axis(Kernel&, const Buffers& m, int& line) { MISTAKE(void) sum(m.a.load(), 2); }
void concat_shapes(Kernel& k, const Buffers& m, int& line) {
  const Vec narrow = zeros(k, Elem::kF32, {16, 128});
  MISTAKE(void) concat({m.a.load(), narrow}, 0);
}
void transpose_rank(Kernel& k, const Buffers&, int& line) {
  const Vec cube = zeros(k, Elem::kF32, {2, 8, 128});
  MISTAKE(void) transpose(cube);
}
void where_condition(Kernel&, const Buffers& m, int& line) {
  const Vec v = m.a.load();
  MISTAKE(void) where(v, v, 0.0);
}
void dot_inner(Kernel& k, const Buffers& m, int& line) {
  const Vec acc = zeros(k, Elem::kF32, {16, 256});
  MISTAKE(void) dot(m.half.load(), m.half.load(), acc);
}
void dot_accumulator(Kernel& k, const Buffers& m, int& line) {
  const Vec acc = zeros(k, Elem::kBf16, {16, 16});
  MISTAKE(void) dot_nt(m.half.load(), m.half.load(), acc);
}
void bitcast_rows(Kernel& k, const Buffers&, int& line) {
  const Vec odd = zeros(k, Elem::kBf16, {1, 128});
  MISTAKE(void) bitcast(odd, Elem::kI32);
}
void cast_same_width(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) cast(m.half.load(), Elem::kF16);
}
void iota_axis(Kernel& k, const Buffers&, int& line) { MISTAKE(void) iota(k, {128}, 0); }
void gather_indices(Kernel& k, const Buffers& m, int& line) {
  const Vec lane = iota(k, {8, 128}, 1);
  MISTAKE(void) gather(m.a.load(), lane, 1);
}
void arg_max_of_bf16(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) arg_max(m.half.load(), 1);
}
void masked_store_of_bf16(Kernel&, const Buffers& m, int& line) {
  const Vec v = m.half.load();
  MISTAKE m.half.store_masked(v, v > 0.0);
}
void empty_allocation(Kernel& k, const Buffers&, int& line) {
  MISTAKE(void) k.vmem(Elem::kF32, {8, 0});
}
void mxu_shape(Kernel& k, const Buffers&, int& line) {
  const Vec w = zeros(k, Elem::kBf16, {128, 256});
  MISTAKE mxu_push(w, 0, 0);
}

void gather_reach(Kernel& k, const Buffers& m, int& line) {
  const Vec lane = iota(k, {16, 256}, 1);
  MISTAKE(void) gather(m.a.load(), lane, 1);
}
void strided_width(Kernel&, const Buffers& m, int& line) {
  MISTAKE(void) m.a.load_strided({0, 0}, {8, 256}, {2, 1});
}
void mixed_mxu(Kernel& k, const Buffers& m, int& line) {
  const Vec w = full(k, Elem::kBf16, {256, 256}, 1.0), acc = zeros(k, Elem::kF32, {16, 256});
  m.a.store(dot(m.half.load(), w, acc));
  MISTAKE mxu_push(w, 0, 0);
}

const ErrorCase kCases[] = {
    {"Elements", "shape_mismatch", "operands of vector<16x256xf32> and vector<16x256xbf16>",
     "cast() one", in_scope<elements>},
    {"BroadcastShapes", "shape_mismatch", "shapes 16x256 and 1x128 do not broadcast", "equal or 1",
     in_scope<broadcast_shapes>},
    {"OperandsOnTwoLines", "shape_mismatch", "do not broadcast", "equal or 1",
     in_scope<operands_on_two_lines>},
    {"ScalarElement", "shape_mismatch", "a vector of f32 and a scalar of i32", "cast()",
     in_scope<scalar_element>},
    {"DivisionOfInts", "shape_mismatch", "needs floats, not i32", "cast() to f32",
     in_scope<division_of_ints>},
    {"BitsOfFloats", "shape_mismatch", "bits of f32 values", "bitcast()", in_scope<bits_of_floats>},
    {"ExpOfInts", "shape_mismatch", "math.exp of vector<8x128xi32>", "cast() first",
     in_scope<exp_of_ints>},
    {"StoreOfWide", "shape_mismatch", "a store of vector<16x256xf32>", "cast()",
     in_scope<store_of_wide>},
    {"ReshapeCount", "shape_mismatch", "reshape of vector<16x256xf32> to vector<16x128xf32>",
     "number of elements", in_scope<reshape_count>},
    {"ReduceAxis", "shape_mismatch", "reduction over axis 2 of vector<16x256xf32>",
     "the axis is one of them", in_scope<reduce_axis>},
    {"ConcatShapes", "shape_mismatch", "concat of vector<16x256xf32> and vector<16x128xf32>",
     "must agree", in_scope<concat_shapes>},
    {"TransposeRank", "shape_mismatch", "transpose of vector<2x8x128xf32>", "reshape() first",
     in_scope<transpose_rank>},
    {"WhereCondition", "shape_mismatch", "a condition of vector<16x256xf32>", "compare first",
     in_scope<where_condition>},
    {"DotInner", "shape_mismatch", "dot: vector<16x256xbf16> by vector<16x256xbf16>",
     "[M,K], [K,N] and [M,N]", in_scope<dot_inner>},
    {"DotAccumulator", "shape_mismatch", "an accumulator of bf16", "use f32",
     in_scope<dot_accumulator>},
    {"BitcastRows", "shape_mismatch", "bitcast of vector<1x128xbf16> to i32", "ratio of the widths",
     in_scope<bitcast_rows>},
    {"CastSameWidth", "shape_mismatch", "cast of vector<16x256xbf16> to f16", "go through f32",
     in_scope<cast_same_width>},
    {"IotaAxis", "shape_mismatch", "iota along axis 0 of 128", "two dimensions or more",
     in_scope<iota_axis>},
    {"GatherIndices", "shape_mismatch", "gather along axis 1", "of the shape of the vector",
     in_scope<gather_indices>},
    {"ArgMaxOfBf16", "shape_mismatch", "arg_max over axis 1 of vector<16x256xbf16>", "cast() first",
     in_scope<arg_max_of_bf16>},
    {"MaskedStoreOfBf16", "shape_mismatch", "a masked store", "32-bit elements only",
     in_scope<masked_store_of_bf16>},
    {"EmptyAllocation", "shape_mismatch", "an allocation of shape 8x0", "at least 1",
     in_scope<empty_allocation>},
    {"GatherReach", "shape_mismatch", "gather along 256 elements of axis 1",
     "within 128 lanes or 8 rows", in_scope<gather_reach>},
    {"StridedWidth", "shape_mismatch", "a strided load in memref<16x256xf32", "exactly 128 lanes",
     in_scope<strided_width>},
    {"MixedMxu", "invalid_ir", "mxu_* operations and dot() in one kernel", "use one of the two",
     in_scope<mixed_mxu>, 1, "dot() at "},
    {"MxuShape", "shape_mismatch", "mxu_push of vector<128x256xbf16>", "256x256",
     in_scope<mxu_shape>},
};
ERROR_SUITE(Shapes, kCases);

}  // namespace
}  // namespace gridless::lang
