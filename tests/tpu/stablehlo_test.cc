// The text that wraps a kernel body, against the forms that JAX writes and by hand.
#include "gridless/tpu/stablehlo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "gridless/base/base64.h"
#include "tests/tpu/corpus_call.h"

namespace gridless::tpu {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kBody = R"("builtin.module"() ({"stable_mosaic.x"() : () -> ()}))";

CallSpec add_one() {
  return {
      .kernel_name = "add_one", .operands = {{{8, 128}, "f32"}}, .results = {{{8, 128}, "f32"}}};
}

std::string text_of(const CallSpec& spec, std::string_view body = kBody) {
  const auto text = stablehlo_text(spec, body);
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

std::string read(const std::string& path) {
  std::ifstream file(std::string(GRIDLESS_TEST_DATA) + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StableHlo, OneCoreIsAPlainCall) {
  const std::string config =
      "{\\22custom_call_config\\22:{\\22body\\22:\\22" + base64_encode(kBody) +
      "\\22,\\22serialization_format\\22:1,\\22needs_layout_passes\\22:true}}";
  EXPECT_EQ(
      text_of(add_one()),
      R"(module @"add_one" attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x128xf32> {mhlo.layout_mode = "{1, 0}"}) -> (tensor<8x128xf32> {mhlo.layout_mode = "{1, 0}"}) {
    %call = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = ")" +
          config +
          R"(", kernel_name = "add_one", operand_layouts = [dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<8x128xf32>) -> tensor<8x128xf32> loc("add_one")
    return %call : tensor<8x128xf32>
  }
}
)");
}

TEST(StableHlo, SeveralCoresShardTheFirstAxisInAManualComputation) {
  CallSpec spec = add_one();
  spec.cores = 32;
  spec.has_communication = true;
  spec.collective_id = 0;
  const std::string text = text_of(spec);
  EXPECT_THAT(text, HasSubstr("mhlo.num_partitions = 32"));
  EXPECT_THAT(text, HasSubstr("sdy.mesh @mesh = <[\"core\"=32]>\n"));
  EXPECT_THAT(text, HasSubstr("@main(%arg0: tensor<256x128xf32> {mhlo.layout_mode = \"{1, 0}\", "
                              "sdy.sharding = #sdy.sharding<@mesh, [{\"core\"}, {}]>})"));
  EXPECT_THAT(text, HasSubstr("%all = sdy.manual_computation(%arg0) in_shardings=[<@mesh, "
                              "[{\"core\"}, {}]>] out_shardings=[<@mesh, [{\"core\"}, {}]>] "
                              "manual_axes={\"core\"} (%shard0: tensor<8x128xf32>) {\n"));
  EXPECT_THAT(text, HasSubstr("      sdy.return %call : tensor<8x128xf32>\n"
                              "    } : (tensor<256x128xf32>) -> tensor<256x128xf32>\n"));
  EXPECT_THAT(text, HasSubstr("has_side_effect = true"));
}

TEST(StableHlo, AnAliasedOperandIsDonatedAndNamedByTheCall) {
  CallSpec spec = add_one();
  spec.operands.push_back({{4, 16}, "i32"});
  spec.results.push_back({{4, 16}, "i32"});
  spec.aliases = {{.result = 1, .operand = 1}};
  const std::string text = text_of(spec);
  EXPECT_THAT(text, HasSubstr("%arg1: tensor<4x16xi32> {mhlo.layout_mode = \"{1, 0}\", "
                              "tf.aliasing_output = 1 : i32}"));
  EXPECT_THAT(text, HasSubstr("%call:2 = stablehlo.custom_call"));
  EXPECT_THAT(text, HasSubstr("return %call#0, %call#1 : tensor<8x128xf32>, tensor<4x16xi32>"));
  // The alias in the very words that JAX uses for the same situation.
  const auto jax = nlohmann::json::parse(read("/corpus/b3_kda_recurrent_step/call.json"));
  const std::string theirs = jax["custom_call_attributes"]["output_operand_aliases"];
  EXPECT_EQ(theirs,
            "[#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = "
            "5, operand_tuple_indices = []>]");
  EXPECT_THAT(text, HasSubstr("output_operand_aliases = [#stablehlo.output_operand_alias<"
                              "output_tuple_indices = [1], operand_index = 1, "
                              "operand_tuple_indices = []>]"));
}

TEST(StableHlo, TheOnlyResultHasAnEmptyTupleIndexAsInJax) {
  CallSpec spec = add_one();
  spec.aliases = {{.result = 0, .operand = 0}};
  EXPECT_THAT(text_of(spec), HasSubstr("output_tuple_indices = [], operand_index = 0"));
  const auto jax = nlohmann::json::parse(read("/corpus/p22_inplace_cache_update/call.json"));
  EXPECT_THAT(jax["custom_call_attributes"]["output_operand_aliases"].get<std::string>(),
              HasSubstr("output_tuple_indices = [], operand_index = 2"));
}

TEST(BackendConfig, HoldsWhatTheKernelNeedsAndNothingUnknown) {
  CallSpec spec = add_one();
  spec.operands = {{{8, 128}, "f32", Space::kHbm},
                   {{4}, "i32", Space::kSmem},
                   {{8, 128}, "f32", Space::kVmem},
                   {{8, 128}, "f32", Space::kAny}};
  spec.results = {{{8, 128}, "f32", Space::kHbm}, {{8, 128}, "f32", Space::kAny}};
  spec.has_communication = true;
  spec.collective_id = 7;
  spec.vmem_limit_bytes = 62914560;
  spec.bounds_checks = false;
  spec.semaphore_checks = false;
  EXPECT_EQ(backend_config(spec, "module"),
            "{\"custom_call_config\":{\"body\":\"bW9kdWxl\",\"has_communication\":true,"
            "\"collective_id\":7,\"needs_layout_passes\":true,"
            "\"output_memory_space_colors\":[{\"color\":0,\"shape_index\":[0]}],"
            "\"input_memory_space_colors\":[{\"operand_index\":0,\"color\":0},"
            "{\"operand_index\":2,\"color\":1}],"
            "\"disable_bounds_checks\":true,\"disable_semaphore_checks\":true},"
            "\"scoped_memory_configs\":[{\"memory_space\":1,\"offset\":0,\"size\":62914560}]}");
}

TEST(BackendConfig, PlainDialectTextHasNoSerializationFormat) {
  EXPECT_THAT(backend_config(add_one(), "module { func.func @main() }"),
              Not(HasSubstr("serialization_format")));
  EXPECT_THAT(backend_config(add_one(), kBody), HasSubstr("\"serialization_format\":1"));
}

// The keys that JAX writes for the same kernels, apart from the locations it keeps outside.
TEST(BackendConfig, AgreesWithJaxOnTheCorpus) {
  for (const char* name : {"b1_rmsnorm_gemv_ring_4dev", "b5_all_reduce_8dev", "p01_dma_add_one",
                           "p31_exchange_2dev", "q07_missing_barrier"}) {
    const std::string call = read(std::string("/corpus/") + name + "/call.json");
    const auto spec = parse_call_json(call);
    ASSERT_TRUE(spec) << name << ": " << spec.error().message;
    auto ours = nlohmann::json::parse(backend_config(*spec, kBody))["custom_call_config"];
    auto theirs = nlohmann::json::parse(call)["backend_config_without_body"]["custom_call_config"];
    ours.erase("body");
    theirs.erase("debug_locations");
    EXPECT_EQ(ours, theirs) << name;
  }
}

TEST(StableHlo, RefusesCallsThatMakeNoSense) {
  const auto error = [](CallSpec spec) {
    const auto text = stablehlo_text(spec, kBody);
    return text ? std::string("accepted") : text.error().message;
  };
  CallSpec spec = add_one();
  spec.operands[0].dtype = "float32";
  EXPECT_THAT(error(spec), HasSubstr("element type 'float32' (known: bf16"));
  spec = add_one();
  spec.operands[0].shape = {8, 0};
  EXPECT_THAT(error(spec), HasSubstr("operand 0: shape 8x0"));
  spec = add_one();
  spec.results[0].shape = {};
  EXPECT_THAT(error(spec), HasSubstr("result 0: the shape is empty"));
  spec = add_one();
  spec.operands[0].shape = {int64_t{1} << 30, int64_t{1} << 30};
  EXPECT_THAT(error(spec), HasSubstr("product at most 2^40"));
  spec = add_one();
  spec.aliases = {{.result = 0, .operand = 3}};
  EXPECT_THAT(error(spec), HasSubstr("1 results and 1 operands"));
  spec = add_one();
  spec.operands[0].dtype = "bf16";
  spec.aliases = {{.result = 0, .operand = 0}};
  EXPECT_THAT(error(spec), HasSubstr("must be alike"));
  spec = add_one();
  spec.aliases = {{.result = 0, .operand = 0}, {.result = 0, .operand = 0}};
  EXPECT_THAT(error(spec), HasSubstr("aliased twice"));
  EXPECT_THAT(stablehlo_text(add_one(), "hello").error().message, HasSubstr("no MLIR module"));
}

}  // namespace
}  // namespace gridless::tpu
