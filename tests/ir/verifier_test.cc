// One wrong module per rule: its kind, and the words that tell the reader what is wrong.
#include "gridless/ir/verifier.h"

#include <gmock/gmock.h>

#include "ir_test_util.h"

namespace gridless::ir {
namespace {

using testing::HasSubstr;

// Refs and values that the bodies below use, as arguments of @main.
const char* const kArgs[][2] = {
    {"%v", "memref<16x256xf32, #tpu.memory_space<vmem>>"},
    {"%b", "memref<16x256xbf16, #tpu.memory_space<vmem>>"},
    {"%h", "memref<64x256xf32, #tpu.memory_space<hbm>>"},
    {"%t", "memref<16xi32, #tpu.memory_space<smem>>"},
    {"%d", "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"},
    {"%s", "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>"},
    {"%a", "memref<4x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"},
    {"%i", "i32"},
    {"%x", "index"},
    {"%p", "i1"},
    {"%f", "f32"},
    {"%m", "vector<16x256xf32>"},
    {"%mb", "vector<16x256xbf16>"},
    {"%mi", "vector<16x256xi32>"},
    {"%mp", "vector<16x256xi1>"},
    {"%r", "vector<16xf32>"},
};

// Replaces $v by the type of %v, for every argument name.
std::string expand(std::string body) {
  std::string out;
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '$') {
      out += body[i++];
      continue;
    }
    size_t j = i + 1;
    while (j < body.size() && std::isalpha(static_cast<unsigned char>(body[j]))) ++j;
    const std::string name = body.substr(i + 1, j - i - 1);
    for (const auto& a : kArgs) {
      if (name == a[0] + 1) out += a[1];
    }
    i = j;
  }
  return out;
}

Diagnostics findings(const std::string& body) {
  std::string args, types;
  for (const auto& a : kArgs) {
    args += (args.empty() ? "" : ", ") + std::string(a[0]) + ": " + a[1];
    types += (types.empty() ? "" : ", ") + std::string(a[1]);
  }
  return verify(
      parse_ok(in_main("%c0 = \"arith.constant\"() {value = 0 : index} : () -> index\n"
                       "%i0 = \"arith.constant\"() {value = 0 : i32} : () -> i32\n"
                       "%i9 = \"arith.constant\"() {value = 9 : i32} : () -> i32\n"
                       "%c9 = \"arith.constant\"() {value = 9 : index} : () -> index\n"
                       "%cm = \"arith.constant\"() {value = -1 : index} : () -> index\n" +
                           expand(body),
                       args, types)));
}

void expect_finding(const std::string& body, const std::string& kind, const std::string& part) {
  const Diagnostics list = findings(body);
  ASSERT_FALSE(list.empty()) << body;
  EXPECT_EQ(list[0].kind, kind) << to_string(list);
  EXPECT_THAT(list[0].message, HasSubstr(part)) << body;
  EXPECT_TRUE(list[0].where.known());
}

void expect_clean(const std::string& body) { EXPECT_EQ(to_string(findings(body)), "") << body; }

struct Row {
  const char* body;
  const char* kind;
  const char* part;
};

void check(const std::vector<Row>& rows) {
  for (const Row& r : rows) expect_finding(r.body, r.kind, r.part);
}

TEST(Verifier, TheArgumentsThemselvesAreClean) { expect_clean(""); }

TEST(Verifier, RowsOfTheTable) {
  check({
      {"\"tpu.delay\"() : () -> ()", "invalid_ir", "0 operands, needs 1 exactly"},
      {"\"tpu.trace_stop\"() ({}) : () -> ()", "invalid_ir", "1 regions, needs 0"},
      {"%q:2 = \"tpu.device_id\"() : () -> (i32, i32)", "invalid_ir", "2 results"},
      {"\"tpu.trace_start\"() : () -> ()", "invalid_ir", "requires attribute 'message'"},
      {"%q = \"tpu.memref_slice\"(%t, %i) {operandSegmentSizes = array<i32: 1, 0, 0>} : ($t, i32) "
       "-> "
       "$t",
       "invalid_ir", "operandSegmentSizes do not fit 2 operands"},
      {"\"tpu.sem_signal\"(%s, %i) {operandSegmentSizes = array<i64: 1, 1, 0, 0, 0>} : ($s, i32) "
       "-> "
       "()",
       "invalid_ir", "operandSegmentSizes"},
  });
}

TEST(Verifier, DefinitionsComeBeforeUses) {
  check({
      {"\"tpu.delay\"(%q) : (i32) -> ()\n%q = \"tpu.device_id\"() : () -> i32", "invalid_ir",
       "operand 0 is used before it is defined (by the tpu.device_id at"},
      {"\"scf.if\"(%p) ({ \"tpu.delay\"(%q) : (i32) -> ()\n\"scf.yield\"() : () -> () }, {}) : "
       "(i1) -> "
       "()\n%q = \"tpu.device_id\"() : () -> i32",
       "invalid_ir", "used before it is defined"},
  });
}

// The parser knows no name from a closed region, so this one is built by hand.
TEST(Verifier, ValuesEndWithTheirRegion) {
  Module m =
      parse_ok(in_main("\"tpu.region\"() ({ %q = \"tpu.device_id\"() : () -> i32\n\"tpu.yield\"() "
                       ": () -> () }) : () "
                       "-> ()"));
  Block& body = m.function("main")->body();
  Value* inner = body.ops[0]->body().ops[0]->result();
  append_op(body, OpCode::kTpuDelay, {inner}, {}, {}, {"k.cc", 5});
  std::swap(body.ops[1], body.ops[2]);
  const Diagnostics list = verify(m);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_THAT(list[0].message, HasSubstr("outside of the block that defines it"));
  EXPECT_EQ(list[0].where, SourceLoc("k.cc", 5));
}

TEST(Verifier, RegionsAndTerminators) {
  check({
      {"\"tpu.region\"() ({}) : () -> ()", "invalid_ir", "region 0 has 0 blocks"},
      {"\"tpu.region\"() ({ \"tpu.trace_stop\"() : () -> () }) : () -> ()", "invalid_ir",
       "does not end with tpu.yield"},
      {"\"tpu.region\"() ({ \"scf.yield\"() : () -> () }) : () -> ()", "invalid_ir",
       "does not end with tpu.yield"},
      {"\"func.return\"() : () -> ()", "invalid_ir", "cannot stand here"},
      {"\"tpu.region\"() ({ ^a:\n\"tpu.yield\"() : () -> ()\n^b:\n\"tpu.yield\"() : () -> () }) : "
       "() "
       "-> ()",
       "invalid_ir", "has 2 blocks"},
  });
}

TEST(Verifier, Functions) {
  const auto one = [](const std::string& text) { return to_string(verify(parse_ok(text))); };
  EXPECT_THAT(one("\"builtin.module\"() ({}) : () -> ()"), HasSubstr("no function"));
  const std::string f = "\"func.func\"() ({ \"func.return\"() : () -> () }) {function_type = ";
  const auto wrap = [](const std::string& s) {
    return "\"builtin.module\"() ({" + s + "}) : () -> ()";
  };
  EXPECT_THAT(one(wrap(f + "(i32) -> (), sym_name = \"main\"} : () -> ()")),
              HasSubstr("arguments () but function_type has (i32)"));
  EXPECT_THAT(one(wrap(f + "() -> i32, sym_name = \"main\"} : () -> ()")),
              HasSubstr("func.return: gives () but the results of func.func"));
  EXPECT_THAT(one(wrap(f + "() -> (), sym_name = \"f\"} : () -> ()\n" + f +
                       "() -> (), sym_name = \"f\"} : () -> ()")),
              HasSubstr("a second function named @f"));
  EXPECT_THAT(one(wrap(f + "() -> (), sym_name = \"main\", window_params = [{transform_indices = "
                           "@none}]} : () -> ()")),
              HasSubstr("a transform function that does not exist"));
  EXPECT_THAT(one(wrap("\"tpu.trace_stop\"() : () -> ()\n" + f +
                       "() -> (), sym_name = \"main\"} : () -> ()")),
              HasSubstr("only functions"));
  EXPECT_THAT(one(wrap(f + "1 : i32, sym_name = \"main\"} : () -> ()")),
              HasSubstr("function_type must be a function type"));
}

TEST(Verifier, Loops) {
  check({
      {"\"scf.for\"(%i, %i, %x) ({ ^b(%k: i32):\n\"scf.yield\"() : () -> () }) : (i32, i32, index) "
       "-> "
       "()",
       "invalid_ir", "bounds and step must be integers of one type"},
      {"\"scf.for\"(%i, %i, %i0) ({ ^b(%k: i32):\n\"scf.yield\"() : () -> () }) : (i32, i32, i32) "
       "-> "
       "()",
       "invalid_ir", "step 0"},
      {"\"scf.for\"(%i, %i, %i) ({ ^b(%k: index):\n\"scf.yield\"() : () -> () }) : (i32, i32, i32) "
       "-> "
       "()",
       "shape_mismatch", "the body takes (index) but the loop gives (i32)"},
      {"%q = \"scf.for\"(%i, %i, %i, %f) ({ ^b(%k: i32, %c: f32):\n\"scf.yield\"(%k) : (i32) -> () "
       "}) : "
       "(i32, i32, i32, f32) -> f32",
       "shape_mismatch", "gives (i32) but the carried values of scf.for"},
      {"\"scf.for\"(%i, %i, %i, %f) ({ ^b(%k: i32, %c: f32):\n\"scf.yield\"(%c) : (f32) -> () }) : "
       "(i32, "
       "i32, i32, f32) -> ()",
       "shape_mismatch", "carries (f32) but has results ()"},
      {"%q = \"scf.while\"(%i) ({ ^b(%k: i32):\n\"scf.condition\"(%p, %f) : (i1, f32) -> () }, { "
       "^b(%k: "
       "i32):\n\"scf.yield\"(%k) : (i32) -> () }) : (i32) -> i32",
       "shape_mismatch", "gives (f32) but the results of scf.while"},
      {"%q = \"scf.while\"(%i) ({ ^b(%k: i32):\n\"scf.condition\"(%k, %k) : (i32, i32) -> () }, { "
       "^b(%k: i32):\n\"scf.yield\"(%k) : (i32) -> () }) : (i32) -> i32",
       "invalid_ir", "the condition must be an i1, got i32"},
  });
}

TEST(Verifier, Branches) {
  check({
      {"\"scf.if\"(%i) ({ \"scf.yield\"() : () -> () }, {}) : (i32) -> ()", "invalid_ir",
       "the condition must be an i1"},
      {"%q = \"scf.if\"(%p) ({ \"scf.yield\"(%i) : (i32) -> () }, {}) : (i1) -> i32", "invalid_ir",
       "no else branch"},
      {"%q = \"scf.if\"(%p) ({ \"scf.yield\"(%i) : (i32) -> () }, { \"scf.yield\"(%f) : (f32) -> "
       "() }) : "
       "(i1) -> i32",
       "shape_mismatch", "gives (f32) but the results"},
      {"%q = \"tpu.region\"() ({ \"tpu.yield\"(%v) : ($v) -> () }) : () -> $v", "invalid_ir",
       "a scope cannot give memref"},
      {"\"cf.assert\"(%i) {msg = \"m\"} : (i32) -> ()", "invalid_ir", "asserts an i1"},
  });
  expect_clean("\"scf.if\"(%p) ({ \"scf.yield\"() : () -> () }, {}) : (i1) -> ()");
}

TEST(Verifier, Composites) {
  const std::string body = "({ \"tpu.delay\"(%i) : (i32) -> ()\n\"tpu.yield\"() : () -> () })";
  expect_finding("\"tpu.region\"() " + body + " {gridless.composite = \"c\"} : () -> ()",
                 "invalid_ir", "captures 1 values, but gridless.order is missing");
  expect_finding("\"tpu.region\"() " + body +
                     " {gridless.composite = \"c\", gridless.order = array<i64: 1>} : () -> ()",
                 "invalid_ir", "gridless.order is [1]");
  expect_clean("\"tpu.region\"() " + body +
               " {gridless.composite = \"c\", gridless.order = array<i64: 0>} : () -> ()");
}

TEST(Verifier, ElementWise) {
  check({
      {"%q = \"arith.addf\"(%f, %m) : (f32, $m) -> $m", "shape_mismatch",
       "must have one type, got f32 and vector<16x256xf32>"},
      {"%q = \"arith.addf\"(%m, %mb) : ($m, $mb) -> $m", "invalid_ir", "must have one type"},
      {"%q = \"arith.addf\"(%i, %i) : (i32, i32) -> i32", "invalid_ir", "computes in f32 or bf16"},
      {"%q = \"math.exp\"(%v) : ($v) -> $v", "invalid_ir", "computes in f32 or bf16"},
      {"%q = \"arith.addi\"(%f, %f) : (f32, f32) -> f32", "invalid_ir", "computes on integers"},
      {"%q = \"arith.cmpi\"(%i, %x) {predicate = 0 : i64} : (i32, index) -> i1", "invalid_ir",
       "compares i32 with index"},
      {"%q = \"arith.cmpi\"(%f, %f) {predicate = 0 : i64} : (f32, f32) -> i1", "invalid_ir",
       "cannot compare f32"},
      {"%q = \"arith.cmpi\"(%i, %i) {predicate = 10 : i64} : (i32, i32) -> i1", "invalid_ir",
       "predicate 10 is not one of 0 to 9"},
      {"%q = \"arith.cmpf\"(%f, %f) {predicate = 16 : i64} : (f32, f32) -> i1", "invalid_ir",
       "predicate 16 is not one of 0 to 15"},
      {"%q = \"arith.cmpf\"(%m, %m) {predicate = 1 : i64} : ($m, $m) -> i1", "shape_mismatch",
       "the result must be i1 of the operands' shape"},
      {"%q = \"arith.select\"(%p, %i, %f) : (i1, i32, f32) -> i32", "shape_mismatch",
       "chooses between i32 and f32"},
      {"%q = \"arith.select\"(%mp, %f, %f) : ($mp, f32, f32) -> f32", "shape_mismatch",
       "the condition vector<16x256xi1>"},
      {"%q = \"arith.extf\"(%f) : (f32) -> bf16", "invalid_ir", "is not wider"},
      {"%q = \"arith.truncf\"(%m) : ($m) -> vector<16x128xbf16>", "shape_mismatch",
       "shapes differ"},
      {"%q = \"arith.truncf\"(%i) : (i32) -> bf16", "invalid_ir", "converts floats"},
      {"%q = \"arith.extsi\"(%i) : (i32) -> i8", "invalid_ir", "is not wider"},
      {"%q = \"arith.trunci\"(%x) : (index) -> i8", "invalid_ir", "converts integers"},
      {"%q = \"arith.sitofp\"(%f) : (f32) -> f32", "invalid_ir", "converts an integer to a float"},
      {"%q = \"arith.fptosi\"(%i) : (i32) -> i32", "invalid_ir", "converts a float to an integer"},
      {"%q = \"arith.bitcast\"(%f) : (f32) -> bf16", "invalid_ir", "different widths"},
      {"%q = \"arith.index_cast\"(%i) : (i32) -> i64", "invalid_ir", "converts between index and"},
      {"%q = \"arith.constant\"() {value = 1 : i32} : () -> f32", "invalid_ir",
       "the value 1 : i32 is not of the result's type f32"},
      {"%q = \"arith.constant\"() {value = \"x\"} : () -> f32", "invalid_ir",
       "is not of the result's"},
      {"%q = \"tpu.weird\"(%m) : ($m) -> $m", "invalid_ir", "NaN or infinite"},
  });
}

TEST(Verifier, Scratch) {
  const auto alloca_of = [](const std::string& type) {
    return "%q = \"memref.alloca\"() {operandSegmentSizes = array<i32: 0, 0>} : () -> " + type;
  };
  expect_finding(alloca_of("memref<?x8xf32, #tpu.memory_space<vmem>>"), "invalid_ir",
                 "dynamic shape");
  expect_finding(alloca_of("memref<8x8xf32, #tpu.memory_space<hbm>>"), "invalid_ir",
                 "must be in vmem or smem");
  expect_finding(alloca_of("memref<8x!tpu.semaphore, #tpu.memory_space<vmem>>"), "invalid_ir",
                 "semaphores in");
  expect_finding("%q = \"tpu.sem_alloc\"() : () -> $v", "invalid_ir", "allocates semaphores");
}

TEST(Verifier, Views) {
  const auto slice = [](const std::string& to, const std::string& start) {
    return "%q = \"tpu.memref_slice\"(%h, " + start +
           ", %i0) {operandSegmentSizes = array<i32: 1, 2, 0>} : ($h, i32, i32) -> memref<" + to +
           ">";
  };
  expect_clean(slice("8x256xf32, #tpu.memory_space<hbm>", "%i9"));
  expect_clean(slice("64x256xf32, #tpu.memory_space<hbm>", "%i"));
  expect_finding(slice("56x256xf32, #tpu.memory_space<hbm>", "%i9"), "out_of_bounds",
                 "dimension 0: 56 elements from 9 of memref<64x256xf32");
  expect_finding(slice("65x256xf32, #tpu.memory_space<hbm>", "%i"), "out_of_bounds", "65 elements");
  expect_finding(slice("8x256xf32, #tpu.memory_space<vmem>", "%i"), "invalid_ir", "a view of");
  expect_finding(slice("8x256xbf16, #tpu.memory_space<hbm>", "%i"), "invalid_ir", "a view of");
  expect_finding(slice("256xf32, #tpu.memory_space<hbm>", "%i"), "shape_mismatch", "of rank 2");
  expect_finding(slice("?x256xf32, #tpu.memory_space<hbm>", "%i"), "shape_mismatch",
                 "0 dynamic sizes");
  check({
      {"%q = \"tpu.memref_squeeze\"(%v) : ($v) -> memref<256xf32, #tpu.memory_space<vmem>>",
       "shape_mismatch", "dimensions of 1 removed"},
      {"%q = \"tpu.memref_reshape\"(%v) : ($v) -> memref<8x256xf32, #tpu.memory_space<vmem>>",
       "shape_mismatch", "has 4096 elements"},
      {"%q = \"tpu.memref_bitcast\"(%b) : ($b) -> memref<16x128xi32, #tpu.memory_space<vmem>>",
       "shape_mismatch", "cannot be seen as"},
      {"%q = \"tpu.reinterpret_cast\"(%v) {operandSegmentSizes = array<i32: 1, 0, 0>} : ($v) -> $h",
       "invalid_ir", "a view of"},
      {"%q = \"tpu.erase_memref_layout\"(%v) : ($v) -> memref<8x256xf32, #tpu.memory_space<vmem>>",
       "shape_mismatch", "shapes differ"},
      {"%q = \"tpu.memref_squeeze\"(%i) : (i32) -> $v", "invalid_ir", "the source must be a ref"},
  });
  expect_clean(
      "%q = \"tpu.memref_bitcast\"(%b) : ($b) -> memref<8x256xi32, #tpu.memory_space<vmem>>");
}

TEST(Verifier, LoadsAndStores) {
  check({
      {"%q = \"vector.load\"(%h, %c0, %c0) : ($h, index, index) -> vector<8x256xf32>\n%z = "
       "\"math.exp\"(%q) : (vector<8x256xf32>) -> vector<8x256xf32>",
       "invalid_ir", "Expected base memref to be in VMEM"},
      {"\"vector.store\"(%m, %h, %c0, %c0) : ($m, $h, index, index) -> ()", "invalid_ir",
       "Expected base memref to be in VMEM"},
      {"%q = \"vector.load\"(%v, %c0) : ($v, index) -> $m", "shape_mismatch", "1 indices"},
      {"%q = \"vector.load\"(%v, %i, %i) : ($v, i32, i32) -> $m", "invalid_ir",
       "index of type i32"},
      {"%q = \"vector.load\"(%v, %c0, %c0) : ($v, index, index) -> $mb", "invalid_ir", "a vector"},
      {"%q = \"vector.load\"(%v, %c0, %c0) : ($v, index, index) -> "
       "vector<1x16x256xf32>",
       "shape_mismatch", "of rank 2"},
      {"%q = \"vector.load\"(%v, %c0, %c0) : ($v, index, index) -> vector<257xf32>\n%z = "
       "\"math.exp\"(%q) : (vector<257xf32>) -> vector<257xf32>",
       "out_of_bounds", "dimension 1: 257 elements"},
      {"\"vector.store\"(%m, %v, %c9, %c0) : ($m, $v, index, index) -> ()", "out_of_bounds",
       "dimension 0: 16 elements from 9"},
      {"\"vector.store\"(%m, %v, %cm, %c0) : ($m, $v, index, index) -> ()", "out_of_bounds",
       "from -1"},
      {"%q = \"tpu.strided_load\"(%v, %c0, %c0) {strides = array<i32: 2, 1>} : ($v, index, index) "
       "-> "
       "vector<9x256xf32>\n%z = \"math.exp\"(%q) : (vector<9x256xf32>) -> vector<9x256xf32>",
       "out_of_bounds", "9 elements at stride 2"},
      {"%q = \"tpu.strided_load\"(%v, %c0, %c0) {strides = array<i32: 0, 1>} : ($v, index, index) "
       "-> "
       "vector<8x256xf32>",
       "invalid_ir", "stride 0"},
      {"\"tpu.vector_store\"(%m, %v, %c0, %c0, %p) {operandSegmentSizes = array<i32: 1, 1, 2, 1>, "
       "strides = array<i32>} : ($m, $v, index, index, i1) -> ()",
       "invalid_ir", "the mask must be an i1 vector"},
      {"\"tpu.vector_store\"(%mb, %b, %c0, %c0, %mp) {operandSegmentSizes = array<i32: 1, 1, 2, "
       "1>, "
       "strides = array<i32>} : ($mb, $b, index, index, $mp) -> ()",
       "invalid_ir", "a masked store of"},
      {"%q = \"memref.load\"(%v, %c0, %c0) : ($v, index, index) -> f32", "invalid_ir",
       "scalars live in smem"},
      {"%q = \"memref.load\"(%t, %c0) : ($t, index) -> f32", "invalid_ir", "a value f32"},
      {"\"memref.store\"(%i, %t, %cm) : (i32, $t, index) -> ()", "out_of_bounds", "index -1"},
  });
}

// A load left over from a swap, whose value nobody reads, is no error.
TEST(Verifier, DeadLoadOutOfBoundsIsAWarning) {
  const Diagnostics list =
      findings("%q = \"vector.load\"(%v, %c9, %c0) : ($v, index, index) -> $m");
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].kind, "out_of_bounds");
  EXPECT_EQ(list[0].severity, Diagnostic::Severity::kWarning);
}

TEST(Verifier, Copies) {
  const auto dma = [](const std::string& operands, const std::string& segments,
                      const std::string& types, int priority = 0) {
    return "\"tpu.enqueue_dma\"(" + operands + ") {operandSegmentSizes = array<i32: " + segments +
           ">, priority = " + std::to_string(priority) + " : i32, strict_ordering = false} : (" +
           types + ") -> ()";
  };
  const std::string local = "1, 0, 1, 1, 0, 0, 0";
  expect_clean(dma("%v, %v, %d", local, "$v, $v, $d"));
  expect_finding(dma("%h, %v, %d", local, "$h, $v, $d"), "shape_mismatch",
                 "DMA source and target shape mismatch: memref<64x256xf32");
  expect_finding(dma("%b, %v, %d", local, "$b, $v, $d"), "shape_mismatch", "element type mismatch");
  expect_finding(dma("%v, %v, %s", local, "$v, $v, $s"), "invalid_ir", "must be a DMA semaphore");
  expect_finding(dma("%v, %v, %a", local, "$v, $v, $a"), "shape_mismatch", "must be one semaphore");
  expect_finding(dma("%v, %v, %v", local, "$v, $v, $v"), "invalid_ir", "must be a semaphore");
  expect_finding(dma("%d, %d, %d", local, "$d, $d, $d"), "invalid_ir", "cannot be copied");
  expect_finding(dma("%v, %v, %d, %i", "1, 0, 1, 1, 1, 0, 0", "$v, $v, $d, i32"), "invalid_ir",
                 "a device_id without a source semaphore");
  expect_finding(dma("%v, %d, %v, %d", "1, 1, 1, 1, 0, 0, 0", "$v, $d, $v, $d"), "invalid_ir",
                 "a source semaphore without a device_id");
  expect_finding(dma("%v, %v, %d", local, "$v, $v, $d", 2), "invalid_ir", "priority 2");
  expect_finding(dma("%v, %d, %v, %d, %f", "1, 1, 1, 1, 1, 0, 0", "$v, $d, $v, $d, f32"),
                 "invalid_ir", "device_id must be an i32");
}

TEST(Verifier, WaitsAndSignals) {
  check({
      {"\"tpu.wait_dma\"(%v, %v, %d) {operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0, 0>, "
       "wait_target = false} : ($v, $v, $d) -> ()",
       "invalid_ir", "no source semaphore"},
      {"\"tpu.wait_dma\"(%v, %v, %d) {operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0, 0>, "
       "wait_target = 1 : i32} : ($v, $v, $d) -> ()",
       "invalid_ir", "wait_target must be a bool"},
      {"\"tpu.sem_wait\"(%d, %i) : ($d, i32) -> ()", "invalid_ir", "must be a regular semaphore"},
      {"\"tpu.sem_wait\"(%s, %x) : ($s, index) -> ()", "invalid_ir", "the amount must be an i32"},
      {"\"tpu.sem_signal\"(%v, %i) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : ($v, i32) "
       "-> ()",
       "invalid_ir", "must be a semaphore"},
      {"\"tpu.sem_signal\"(%s, %i, %f) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : ($s, "
       "i32, "
       "f32) -> ()",
       "invalid_ir", "an id must be an i32"},
      {"%q = \"tpu.sem_read\"(%s) : ($s) -> f32", "invalid_ir", "the result must be an i32"},
      {"%q = \"tpu.sem_barrier\"() : () -> $d", "invalid_ir", "must be a regular semaphore"},
      {"%q = \"tpu.device_id\"() : () -> index", "invalid_ir", "the result must be an i32"},
      {"\"tpu.delay\"(%f) : (f32) -> ()", "invalid_ir", "the delay must be an i32"},
      {"%q = \"tpu.iteration_bound\"() {dim = 0 : i32} : () -> f32", "invalid_ir",
       "must be an i32"},
      {"\"tpu.prng_set_seed_32\"(%f) : (f32) -> ()", "invalid_ir", "a seed must be an i32"},
      {"%q = \"tpu.prng_random_bits\"() : () -> $m", "invalid_ir", "gives an i32 vector"},
  });
}

TEST(Verifier, Matmul) {
  const auto matmul = [](const std::string& dims, const std::string& acc,
                         const std::string& flags = "transpose_lhs = false") {
    return "%w = \"arith.constant\"() {value = dense<0.0> : " + acc + "} : () -> " + acc +
           "\n%q = \"tpu.matmul\"(%mb, %mb, %w) {dimension_numbers = #tpu.dot_dimension_numbers<" +
           dims + ">, " + flags +
           ", transpose_lhs_hint = false, transpose_rhs = false} : ($mb, $mb, " + acc + ") -> " +
           acc;
  };
  const std::string nt = "[1], [1], [0], [0], [0, 0, 1, 0], [], []";
  expect_clean(matmul(nt, "vector<16x16xf32>"));
  expect_finding(matmul("[1], [0], [0], [1], [0, 0, 1, 1], [], []", "vector<16x256xf32>"),
                 "shape_mismatch", "contracting dimensions differ: vector<16x256xbf16> times");
  expect_finding(matmul(nt, "vector<16x8xf32>"), "shape_mismatch", "gives 16x16");
  expect_finding(matmul(nt, "vector<16x16xbf16>"), "invalid_ir",
                 "accumulates in vector<16x16xbf16>");
  expect_finding(matmul("[1], [1], [0], [0], [0, 0], [], []", "vector<16x16xf32>"), "invalid_ir",
                 "output dimensions [0, 0]");
  expect_finding(matmul("[1], [1], [1], [0], [0, 0, 1, 0], [], []", "vector<16x16xf32>"),
                 "invalid_ir", "do not name each dimension");
  expect_finding(matmul("nonsense", "vector<16x16xf32>"), "invalid_ir", "cannot be read");
  expect_finding(matmul(nt, "vector<16x16xf32>", "transpose_lhs = true"), "invalid_ir",
                 "transpose_lhs = true");
  check({
      {"\"tpu.matmul_push_rhs\"(%r) {mxu_index = 0 : i32} : ($r) -> ()", "invalid_ir",
       "2-D vector"},
      {"\"tpu.matmul_acc_lhs\"(%m) {mxu_index = 0 : i32, acc = \"x\"} : ($m) -> ()", "invalid_ir",
       "'acc' must be an integer"},
      {"%q = \"tpu.matmul_pop\"() {mxu_index = 0 : i32, acc = 0 : i32} : () -> f32", "invalid_ir",
       "2-D vector"},
      {"\"tpu.matmul_lhs_fifo\"(%f) {mxu_index = 0 : i32} : (f32) -> ()", "invalid_ir",
       "2-D vector"},
      {"%q = \"tpu.matmul_pop_fifo\"() {mxu_index = 0 : i32} : () -> $r", "invalid_ir",
       "2-D vector"},
  });
}

TEST(Verifier, VectorShapes) {
  check({
      {"%q = \"tpu.iota\"() {dimensions = array<i32: 2>} : () -> $mi", "invalid_ir",
       "dimensions [2] of a vector of rank 2"},
      {"%q = \"tpu.iota\"() {dimensions = array<i32: 0>} : () -> vector<8xi32>", "invalid_ir",
       "a 1-D iota"},
      {"%q = \"tpu.iota\"() {dimensions = array<i32: 0>} : () -> $m", "invalid_ir",
       "counts integers"},
      {"%q = \"tpu.concatenate\"(%m, %m) {dimension = 0 : i32} : ($m, $m) -> $m", "shape_mismatch",
       "the parts have 32 along dimension 0"},
      {"%q = \"tpu.concatenate\"(%m, %mb) {dimension = 0 : i32} : ($m, $mb) -> vector<32x256xf32>",
       "shape_mismatch", "joined along dimension 0"},
      {"%q = \"tpu.concatenate\"(%m, %m) {dimension = 2 : i32} : ($m, $m) -> $m", "invalid_ir",
       "dimension 2 of a vector of rank 2"},
      {"%q = \"tpu.dynamic_rotate\"(%m, %i) {dimension = 2 : si32} : ($m, i32) -> $m", "invalid_ir",
       "dimension 2"},
      {"%q = \"tpu.dynamic_rotate\"(%m, %i) {dimension = 1 : si32, stride = 1 : si32} : ($m, i32) "
       "-> "
       "$m",
       "invalid_ir", "belong together"},
      {"%q = \"tpu.bitcast\"(%mb) : ($mb) -> vector<16x128xi32>", "shape_mismatch",
       "cannot be seen as"},
      {"%q = \"tpu.transpose\"(%m) {permutation = array<i64: 1, 0>} : ($m) -> $m", "shape_mismatch",
       "permuted by [1, 0]"},
      {"%q = \"tpu.transpose\"(%m) {permutation = array<i64: 1, 1>} : ($m) -> $m", "invalid_ir",
       "dimensions [1, 1]"},
      {"%q = \"tpu.reduce_index\"(%m) {axis = 1 : i32, kind = #tpu.reduction_kind<sum>} : ($m) -> "
       "vector<16xi32>",
       "invalid_ir", "kind 'sum'"},
      {"%q = \"tpu.reduce_index\"(%m) {axis = 0 : i32, kind = #tpu.reduction_kind<arg_max>} : ($m) "
       "-> "
       "vector<16xi32>",
       "shape_mismatch", "reduced along 0"},
      {"%q = \"tpu.dynamic_gather\"(%m, %m) {dimensions = array<i32: 1>} : ($m, $m) -> $m",
       "invalid_ir", "indices must be i32"},
      {"%q = \"tpu.dynamic_gather\"(%m, %mi) {dimensions = array<i32: 1>} : ($m, $mi) -> "
       "vector<16x128xf32>",
       "shape_mismatch", "shapes differ"},
      {"%q = \"tpu.pack_elementwise\"(%m) {target_type = bf16} : ($m) -> $mi", "invalid_ir",
       "1 elements of bf16 do not fill one"},
      {"%q = \"tpu.unpack_elementwise\"(%mi) {source_type = bf16, index = 2 : i32} : ($mi) -> $m",
       "out_of_bounds", "part 2 of 2"},
      {"%q = \"tpu.stochastic_convert\"(%m, %m) : ($m, $m) -> $mb", "invalid_ir", "random bits"},
      {"%q = \"vector.broadcast\"(%r) : ($r) -> $m", "shape_mismatch", "does not broadcast"},
      {"%q = \"vector.broadcast\"(%i) : (i32) -> $m", "shape_mismatch", "does not broadcast"},
      {"%q = \"vector.shape_cast\"(%m) : ($m) -> vector<16x128xf32>", "shape_mismatch",
       "has 4096 elements"},
      {"%q = \"vector.extract\"(%m) {static_position = array<i64: 16, 0>} : ($m) -> f32",
       "out_of_bounds", "position 16 of dimension 0"},
      {"%q = \"vector.extract\"(%m) {static_position = array<i64: 0>} : ($m) -> f32",
       "shape_mismatch", "gives vector<256xf32>, not f32"},
      {"%q = \"vector.extract_strided_slice\"(%m) {offsets = [8, 128], sizes = [9, 128], strides = "
       "[1, "
       "1]} : ($m) -> vector<9x128xf32>",
       "out_of_bounds", "dimension 0: 9 elements from 8"},
      {"%q = \"vector.extract_strided_slice\"(%m) {offsets = [0, 0], sizes = [8, 128], strides = "
       "[2, "
       "1]} : ($m) -> vector<8x128xf32>",
       "invalid_ir", "stride 2"},
      {"%q = \"vector.extract_strided_slice\"(%m) {offsets = [0], sizes = [8], strides = [1]} : "
       "($m) -> "
       "vector<8x128xf32>",
       "shape_mismatch", "gives 8x256"},
      {"%q = \"vector.multi_reduction\"(%m, %r) {kind = #vector.kind<maxsi>, reduction_dims = "
       "array<i64: 1>} : ($m, $r) -> $r",
       "invalid_ir", "cannot reduce vector<16x256xf32> by 'maxsi'"},
      {"%q = \"vector.multi_reduction\"(%m, %r) {kind = #vector.kind<add>, reduction_dims = "
       "array<i64: "
       "0>} : ($m, $r) -> $r",
       "shape_mismatch", "reduced along [0] gives vector<256xf32>"},
      {"%q = \"tpu.transpose\"(%f) {permutation = array<i64: 0>} : (f32) -> f32", "invalid_ir",
       "needs vectors"},
  });
}

TEST(Verifier, AttributesOfTheWrongKind) {
  check({
      {"%q = \"tpu.iota\"() {dimensions = 0 : i32} : () -> $mi", "invalid_ir",
       "'dimensions' must be array"},
      {"%q = \"tpu.concatenate\"(%m, %m) {dimension = \"0\"} : ($m, $m) -> vector<32x256xf32>",
       "invalid_ir", "'dimension' must be an integer"},
      {"%q = \"vector.extract_strided_slice\"(%m) {offsets = array<i64: 0, 0>, sizes = [8, 128], "
       "strides = [1, 1]} : ($m) -> vector<8x128xf32>",
       "invalid_ir", "'offsets' must be a list"},
      {"%q = \"tpu.pack_elementwise\"(%m, %m) {target_type = 1 : i32} : ($m, $m) -> $mi",
       "invalid_ir", "target_type must be a type"},
  });
}

}  // namespace
}  // namespace gridless::ir
