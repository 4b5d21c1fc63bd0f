// The printer and the parser against texts that MLIR itself wrote.
#include "gridless/ir/text.h"

#include <gmock/gmock.h>

#include "ir_test_util.h"

namespace gridless::ir {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Text, CorpusModulesComeBackToTheByte) {
  const auto files = corpus_modules();
  ASSERT_EQ(files.size(), 60U);
  for (const auto& file : files) {
    const std::string text = read_file(file);
    const Module m = parse_ok(text, file.string());
    EXPECT_EQ(m.version, 18);
    EXPECT_EQ(print(m, {.version = 18}), text) << file;
  }
}

TEST(Text, PrintingIsStableAtEveryVersion) {
  auto files = corpus_modules();
  for (const auto& f : mlir_files()) files.push_back(f);
  for (const auto& file : files) {
    const Module m = parse_ok(read_file(file), file.string());
    for (int version = 13; version <= 18; ++version) {
      const std::string once = print(m, {.version = version});
      const Module again = parse_ok(once, file.string());
      EXPECT_EQ(again.version, version);
      EXPECT_EQ(print(again, {.version = version}), once) << file << " at " << version;
    }
  }
}

// The version 13 texts of the examples were accepted by the real dialect's deserialiser: read to
// the newest form and written again they must not have changed.
TEST(Text, Version13ExamplesSurviveTheNewestForm) {
  for (const char* name : {"add_one", "dma_matmul", "ring", "loops"}) {
    const std::string text = read_file(GRIDLESS_TEST_DATA "/mlir/" + std::string(name) + ".mlir");
    const Module m = parse_ok(text, name);
    EXPECT_EQ(normalised(print(m, {.version = 13})), normalised(text)) << name;
  }
}

TEST(Text, LocalWaitIsWaitDma2At13) {
  const Module m = parse_ok(read_file(GRIDLESS_TEST_DATA "/corpus/p01_dma_add_one/module.mlir"));
  const std::string old = print(m, {.version = 13});
  EXPECT_THAT(old, HasSubstr("\"stable_mosaic.tpu.wait_dma2\"(%arg3, %arg0, %arg2) "
                             "{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, "
                             "strict_ordering = false}"));
  EXPECT_THAT(old, HasSubstr("\"stable_mosaic.tpu.enqueue_dma\"(%arg0, %arg2, %arg3) "
                             "{operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>"));
  EXPECT_THAT(old, Not(HasSubstr("wait_target")));
  EXPECT_THAT(print(m, {.version = 14}), HasSubstr("array<i32: 1, 0, 1, 1, 0, 0, 0>"));
}

TEST(Text, RemoteWaitsFollowTheOldConvention) {
  const Module m = parse_ok(read_file(GRIDLESS_TEST_DATA "/corpus/p31_exchange_2dev/module.mlir"));
  const std::string old = print(m, {.version = 13});
  // Send half: refs swapped, both ids a zero written in front. Receive half: the target device.
  EXPECT_THAT(old, testing::ContainsRegex(
                       "%([0-9]+) = \"stable_mosaic.arith.constant\"\\(\\) \\{value = 0 : i32\\} : "
                       "\\(\\) -> i32\n    \"stable_mosaic.tpu.wait_dma2\"\\(%arg2, %arg1, %arg0, "
                       "%[0-9]+, %[0-9]+\\) \\{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>"));
  EXPECT_THAT(old, testing::ContainsRegex("wait_dma2\"\\(%arg3, %arg0, %arg1, %[0-9]+\\) "
                                          "\\{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>"));
  EXPECT_THAT(old, HasSubstr("array<i32: 1, 1, 1, 0>} : (memref<!tpu.semaphore"));
  const Module again = parse_ok(old);
  int sends = 0, receives = 0;
  walk(*again.top, [&](const Op& op) {
    if (op.code != OpCode::kTpuWaitDma) return;
    const bool target = op.bool_attr_or("wait_target", true);
    (target ? receives : sends) += 1;
    EXPECT_EQ(op.segment(target ? 3 : 1).size(), 1U);
    EXPECT_EQ(op.segment(target ? 1 : 3).size(), 0U);
  });
  EXPECT_EQ(sends, 1);
  EXPECT_EQ(receives, 1);
}

TEST(Text, PlainFormIsRead) {
  const Module m = parse_ok(in_main(
      "%0 = \"arith.constant\"() <{value = 2 : i32}> : () -> i32\n"
      "%1:2 = \"tpu.region\"() ({ \"tpu.yield\"(%0, %0) : (i32, i32) -> () }) : () -> (i32, i32)\n"
      "\"tpu.delay\"(%1#1) : (i32) -> ()"));
  EXPECT_EQ(m.version, 18);
  const std::string text = print(m, {.version = 18});
  EXPECT_THAT(text, HasSubstr("%1:2 = \"stable_mosaic.tpu.region\"() ({"));
  EXPECT_THAT(text, HasSubstr("\"stable_mosaic.tpu.delay\"(%1#1) : (i32) -> ()"));
}

TEST(Text, OpsGetTheirPlaceOrTheirLocation) {
  const std::string text =
      "#loc3 = loc(\"kernel.cc\":7:3)\n" +
      in_main(
          "  %0 = \"arith.constant\"() {value = 2 : i32} : () -> i32\n"
          "\"tpu.delay\"(%0) : (i32) -> () loc(\"f.cc\":12:5 to :9)\n"
          "\"tpu.delay\"(%0) : (i32) -> () loc(#loc3)\n"
          "\"tpu.delay\"(%0) : (i32) -> () loc(\"get:\"(callsite(\"g\"(#loc9) at \"h\"(#loc3))))\n"
          "\"tpu.delay\"(%0) : (i32) -> () loc(fused<\"x\">[unknown, \"a.cc\":1:2])\n"
          "\"tpu.delay\"(%0) : (i32) -> () loc(unknown)") +
      "#loc9 = loc(\"late.cc\":9:1)\n";
  const Module m = parse_ok(text, "body.mlir");
  std::vector<SourceLoc> places;
  for (const auto& op : m.function("main")->body().ops) places.push_back(op->loc);
  ASSERT_EQ(places.size(), 7U);
  EXPECT_EQ(places[0], SourceLoc("body.mlir", 4, 8));
  EXPECT_EQ(places[1], SourceLoc("f.cc", 12, 5));
  EXPECT_EQ(places[2], SourceLoc("kernel.cc", 7, 3));
  EXPECT_EQ(places[3], SourceLoc("late.cc", 9, 1));
  EXPECT_EQ(places[4], SourceLoc("a.cc", 1, 2));
  EXPECT_FALSE(places[5].known());
}

TEST(Text, LocationsAndArgumentNamesRoundTrip) {
  Module m;
  const Type i32 = Type::scalar(Elem::kI32);
  Op* f = append_op(m.body(), OpCode::kFuncFunc, {}, {},
                    {{"function_type", Attr::type(Type::function({i32}, {}))},
                     {"sym_name", Attr::string("main")}},
                    {"k.cc", 3, 1}, 1);
  Value* x = f->body().add_arg(i32, "x \"quoted\"");
  append_op(f->body(), OpCode::kTpuDelay, {x}, {}, {}, {"dir\\k.cc", 4, 2});
  append_op(f->body(), OpCode::kFuncReturn, {}, {}, {}, {"k.cc", 5, 3});
  m.top->loc = {"k.cc", 1, 1};
  const std::string text = print(m, {.version = 13, .locations = true});
  EXPECT_THAT(text, HasSubstr("(i32) -> () loc(\"dir\\\\k.cc\":4:2)"));
  const Module again = parse_ok(text);
  EXPECT_EQ(print(again, {.version = 13, .locations = true}), text);
  EXPECT_EQ(again.function("main")->body().args[0]->name, "x \"quoted\"");
}

TEST(Text, AttributeFormsComeBackUnchanged) {
  for (const std::string attr :
       {"4 : i32",
        "-1 : si32",
        "18446744073709551615 : ui64",
        "0 : index",
        "true",
        "unit",
        "\"a \\22b\\\\ \\0A\\E2\\82\\AC\"",
        "@main",
        "@\"with space\"",
        "[]",
        "[8, 128]",
        "[1 : i32, 2.500000e+00, 1.000000e+00 : f32, @f, [true, \"s\"]]",
        "{a = 1 : i32, b}",
        "{\"odd name\" = 0 : i64}",
        "array<i32>",
        "array<i64: 1, -2>",
        "array<i1: true, false>",
        "array<f32: 1.000000e+00, 0x7FC00000>",
        "dense<0.000000e+00> : vector<8x128xf32>",
        "dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>",
        "dense<[true, false]> : vector<2xi1>",
        "dense<> : tensor<0xf32>",
        "dense<[1.500000e+00, -0.000000e+00]> : vector<2xbf16>",
        "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>",
        "#tpu.tiled<(8,128)(2,1),[4,1]>",
        "#foo.bar<\"a > b\", (x) -> y>",
        "#tpu.thing",
        "affine_map<(d0, d1) -> (d1)>",
        "f32",
        "vector<8x128xbf16>",
        "() -> ()",
        "memref<2x?xf32, #tpu.tiled<(8,128),[1]>, #tpu.memory_space<vmem>>",
        "memref<4x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>",
        "(i32, memref<f8E4M3FN, #tpu.memory_space<any>>) -> (i32, index)"}) {
    const Module m = parse_ok(in_main("\"tpu.trace_stop\"() {x = " + attr + "} : () -> ()"));
    const Op& op = *m.function("main")->body().ops.at(0);
    ASSERT_NE(op.find("x"), nullptr) << attr;
    EXPECT_EQ(print(*op.find("x")), attr);
  }
}

TEST(Text, DenseFormsAreReadToOneForm) {
  const auto read = [](const std::string& attr) {
    const Module m = parse_ok(in_main("\"tpu.trace_stop\"() {x = " + attr + "} : () -> ()"));
    return *m.function("main")->body().ops.at(0)->find("x");
  };
  EXPECT_EQ(print(read("dense<[7, 7, 7]> : vector<3xi32>")), "dense<7> : vector<3xi32>");
  EXPECT_EQ(print(read("dense<\"0x0000803F000000C0\"> : vector<2xf32>")),
            "dense<[1.000000e+00, -2.000000e+00]> : vector<2xf32>");
  EXPECT_EQ(print(read("dense<\"0xFF7F\"> : vector<2xi8>")), "dense<[-1, 127]> : vector<2xi8>");
  EXPECT_EQ(print(read("dense<\"0x05\"> : vector<4xi1>")),
            "dense<[true, false, true, false]> : vector<4xi1>");
  // More than 100 different elements are written as bytes, and read back.
  std::vector<int64_t> many;
  for (int i = 0; i < 101; ++i) many.push_back(i - 50);
  const Attr a = Attr::dense_int(Type::vector({101}, Elem::kI16), many);
  const std::string text = print(a);
  EXPECT_THAT(text, testing::StartsWith("dense<\"0xCEFFCFFFD0FF"));
  EXPECT_EQ(read(text), a);
}

TEST(Text, FormsOfOlderVersionsBecomeTheNewest) {
  const std::string sem = "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>";
  const Module m = parse_ok(in_main(
      "%c = \"arith.constant\"() {value = 1 : i32} : () -> i32\n"
      "\"tpu.sem_signal\"(%s, %c) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (" +
          sem +
          ", i32) -> ()\n"
          "%r = \"tpu.reinterpret_cast\"(%m) : (memref<16x256xf32, #tpu.memory_space<vmem>>) -> "
          "memref<8x512xf32, #tpu.memory_space<vmem>>",
      "%s: " + sem + ", %m: memref<16x256xf32, #tpu.memory_space<vmem>>"));
  const Block& body = m.function("main")->body();
  EXPECT_EQ(body.ops[1]->ints_attr("operandSegmentSizes"), (std::vector<int64_t>{1, 1, 0, 0, 0}));
  EXPECT_EQ(body.ops[2]->ints_attr("operandSegmentSizes"), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_THAT(print(m, {.version = 14}), HasSubstr("reinterpret_cast\"(%arg1) : (memref"));
  EXPECT_THAT(print(m, {.version = 15}), HasSubstr("array<i32: 1, 0, 0>"));
}

}  // namespace
}  // namespace gridless::ir
