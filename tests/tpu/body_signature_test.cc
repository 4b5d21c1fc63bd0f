// What is read from a body's text without parsing it, and the disagreements that libtpu would miss.
#include "gridless/tpu/body_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/tpu/corpus_call.h"

namespace gridless::tpu {
namespace {

using testing::HasSubstr;

constexpr std::string_view kBody = R"("builtin.module"() ({
  "stable_mosaic.func.func"() <{sym_name = "k"}> ({
  ^bb0(%0: memref<8x128xf32, #tpu.memory_space<hbm>>, %1: memref<4xi32, #tpu.memory_space<smem>>, %2: memref<16x256xbf16, #tpu.tiled<(8,128)(2,1),[2,1]>, #tpu.memory_space<vmem>>, %3: memref<2x!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>):
    "stable_mosaic.func.return"() : () -> ()
  }) : () -> ()
}) : () -> ())";

std::string read(const std::string& path) {
  std::ifstream file(std::string(GRIDLESS_TEST_DATA) + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(BodySignature, ReadsShapesTypesAndSpaces) {
  const auto arguments = body_arguments(kBody);
  ASSERT_EQ(arguments.size(), 4u);
  EXPECT_EQ(arguments[0].shape, (std::vector<int64_t>{8, 128}));
  EXPECT_EQ(arguments[0].dtype, "f32");
  EXPECT_EQ(arguments[0].space, "hbm");
  EXPECT_EQ(arguments[1].space, "smem");
  EXPECT_EQ(arguments[2].shape, (std::vector<int64_t>{16, 256}));
  EXPECT_EQ(arguments[2].dtype, "bf16");
  EXPECT_EQ(arguments[2].space, "vmem");
  EXPECT_EQ(arguments[3].dtype, "!tpu.dma_semaphore");
}

TEST(BodySignature, HbmArgumentsPinTheirOperands) {
  CallSpec spec{.kernel_name = "k",
                .operands = {{{8, 128}, "f32"}, {{4}, "i32"}},
                .results = {{{16, 256}, "bf16"}}};
  EXPECT_TRUE(match_signature(kBody, "k.mlir", spec).empty());
  EXPECT_EQ(spec.operands[0].space, Space::kHbm);
  EXPECT_EQ(spec.operands[1].space, Space::kAny);
  EXPECT_EQ(spec.results[0].space, Space::kAny);
}

TEST(BodySignature, SaysWhichOperandDisagrees) {
  CallSpec spec{.kernel_name = "k",
                .operands = {{{8, 128}, "f32"}, {{4}, "f32"}},
                .results = {{{16, 512}, "bf16"}}};
  const Diagnostics found = match_signature(kBody, "k.mlir", spec);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].message, "operand 1 is 4xf32 in the call and 4xi32 in the kernel");
  EXPECT_EQ(found[1].message, "result 0 is 16x512xbf16 in the call and 16x256xbf16 in the kernel");
  EXPECT_EQ(found[0].where, SourceLoc("k.mlir", 3, 0));
}

TEST(BodySignature, CountsArguments) {
  CallSpec spec{.kernel_name = "k", .operands = std::vector<OperandSpec>(5, {{8, 128}, "f32"})};
  const Diagnostics found = match_signature(kBody, "k.mlir", spec);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].message, HasSubstr("takes only 4 refs"));
}

TEST(BodySignature, PrettyFormIsNotJudged) {
  CallSpec spec{.kernel_name = "k", .operands = {{{8, 128}, "f32"}}};
  EXPECT_TRUE(match_signature("module { func.func @k(%0: memref<4xi32>) { \"scf.for\"() ({\n"
                              "^bb0(%i: index): }) } }",
                              "k.mlir", spec)
                  .empty());
  EXPECT_TRUE(body_arguments("").empty());
  EXPECT_TRUE(body_arguments("\"func.func\"() ({ ^bb0(%0: memref<8x").empty());
  EXPECT_TRUE(body_arguments("\"func.func\"() ({ ^bb0(%0: memref<?x8xf32>):").empty());
}

// JAX wrote both sides of every corpus kernel, so each pair must agree.
TEST(BodySignature, AgreesWithEveryCallOfTheCorpus) {
  for (const auto& entry : nlohmann::json::parse(read("/corpus/index.json"))) {
    const std::string folder = "/corpus/" + entry["name"].get<std::string>();
    auto spec = parse_call_json(read(folder + "/call.json"));
    ASSERT_TRUE(spec);
    const std::string body = read(folder + "/module.mlir");
    EXPECT_GE(body_arguments(body).size(), spec->operands.size() + spec->results.size()) << folder;
    const Diagnostics found = match_signature(body, folder, *spec);
    EXPECT_TRUE(found.empty()) << to_string(found);
  }
}

}  // namespace
}  // namespace gridless::tpu
