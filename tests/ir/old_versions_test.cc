// Modules of versions that are read but no longer written.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "gridless/ir/read_program.h"
#include "gridless/ir/verifier.h"
#include "tests/ir/ir_test_util.h"

namespace gridless::ir {
namespace {

using testing::HasSubstr;

Module read_form(int version) {
  auto m = read_module(fmt::format(GRIDLESS_TEST_DATA "/old_versions/forms.v{}.mlirbc", version));
  EXPECT_TRUE(m.has_value()) << version << "\n" << (m ? "" : to_string(m.error()));
  return m ? std::move(*m) : Module();
}

TEST(OldVersions, WhatJaxlibWritesAtEachIsTheSameModule) {
  const Module newest = read_form(15);
  EXPECT_EQ(newest.version, 15);
  const std::string expected = print(newest, {.version = 18});
  EXPECT_THAT(expected, HasSubstr("tpu.dynamic_gather"));
  EXPECT_THAT(expected, HasSubstr("vector.multi_reduction"));
  for (const int version : {3, 4, 5, 6, 7, 11}) {
    const Module m = read_form(version);
    EXPECT_EQ(m.version, version);
    EXPECT_EQ(print(m, {.version = 18}), expected) << version;
    EXPECT_FALSE(has_errors(verify(m))) << to_string(verify(m));
  }
}

// Version 1 as its description in JAX says: no segments, wait_dma(sem, ref), lists of attributes.
TEST(OldVersions, TheFirstHadNoSegments) {
  const std::string hbm = "memref<8x128xf32, #tpu.memory_space<any>>",
                    sem = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>";
  const std::string text =
      "\"builtin.module\"() ({\n\"stable_mosaic.func.func\"() ({\n^bb0(%a: " + hbm +
      ", %b: " + hbm + ", %s: " + sem +
      "):\n"
      "\"stable_mosaic.tpu.enqueue_dma\"(%a, %b, %s) : (" +
      hbm + ", " + hbm + ", " + sem +
      ") -> ()\n"
      "\"stable_mosaic.tpu.wait_dma\"(%s, %b) : (" +
      sem + ", " + hbm +
      ") -> ()\n"
      "\"stable_mosaic.func.return\"() : () -> ()\n}) {function_type = (" +
      hbm + ", " + hbm + ", " + sem +
      ") -> (), sym_name = \"main\"} : () -> ()\n}) {stable_mosaic.version = 1 : i64} : () -> ()\n";
  const Module m = parse_ok(text);
  EXPECT_FALSE(has_errors(verify(m))) << to_string(verify(m));
  const Block& body = m.function("main")->body();
  EXPECT_EQ(body.ops[0]->ints_attr("operandSegmentSizes"),
            (std::vector<int64_t>{1, 0, 1, 1, 0, 0, 0}));
  EXPECT_EQ(body.ops[1]->operands[0], body.args[1].get());
  EXPECT_EQ(body.ops[1]->operands[2], body.args[2].get());
  // From version 13 on, what is missing stays missing.
  std::string late = text;
  late.replace(late.find("version = 1 "), 12, "version = 13 ");
  EXPECT_TRUE(has_errors(verify(parse_ok(late))));
}

TEST(OldVersions, RepeatAndTransposeHaveNewerNames) {
  const Module m =
      parse_ok(in_main("%r = \"tpu.repeat\"(%v) {dimension = 1 : i32, times = 3 : i32} : "
                       "(vector<8x128xf32>) -> vector<8x384xf32>\n"
                       "%t = \"vector.transpose\"(%v) {permutation = array<i64: 1, 0>} : "
                       "(vector<8x128xf32>) -> vector<128x8xf32>",
                       "%v: vector<8x128xf32>"));
  const Block& body = m.function("main")->body();
  EXPECT_EQ(body.ops[0]->code, OpCode::kTpuConcatenate);
  EXPECT_EQ(body.ops[0]->operands.size(), 3u);
  EXPECT_EQ(body.ops[1]->code, OpCode::kTpuTranspose);
  auto none = parse(in_main("%r = \"tpu.repeat\"(%v) {dimension = 1 : i32, times = 0 : i32} : "
                            "(vector<8x128xf32>) -> vector<8x0xf32>",
                            "%v: vector<8x128xf32>"),
                    "t.mlir");
  ASSERT_FALSE(none.has_value());
  EXPECT_THAT(to_string(none.error()), HasSubstr("times = 1 to 65536"));
}

}  // namespace
}  // namespace gridless::ir
