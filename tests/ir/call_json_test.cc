#include "gridless/ir/call_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/ir/ir_test_util.h"

namespace gridless::ir {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(CallJson, ReadsEveryCallOfTheCorpus) {
  const auto index = nlohmann::json::parse(read_file(GRIDLESS_TEST_DATA "/corpus/index.json"));
  ASSERT_EQ(index.size(), 60u);
  for (const auto& entry : index) {
    const std::string name = entry["name"];
    const auto call =
        parse_call_json(read_file(GRIDLESS_TEST_DATA "/corpus/" + name + "/call.json"));
    ASSERT_TRUE(call) << name << ": " << call.error().message;
    EXPECT_EQ(call->cores, entry["devices"]) << name;
  }
}

TEST(CallJson, SaysWhatIsMissing) {
  const auto error = [](std::string_view json) {
    const auto call = parse_call_json(json);
    return call ? "accepted" : call.error().message;
  };
  EXPECT_THAT(error("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error("{\"kernel_name\": \"k\"}"), HasSubstr("operands"));
  EXPECT_THAT(error(R"({"kernel_name": "k", "operands": [{"shape": "x"}], "results": []})"),
              HasSubstr("call.json"));
  const auto operand = [&](const std::string& rest) {
    return error(R"({"kernel_name": "k", "results": [], "operands": [{)" + rest + "}]}");
  };
  EXPECT_THAT(operand(R"("shape": [8], "dtype": "f32", "space": "disk")"),
              HasSubstr("memory space 'disk'"));
  EXPECT_THAT(operand(R"("shape": [8], "dtype": "float32")"), HasSubstr("dtype 'float32'"));
  EXPECT_THAT(operand(R"("shape": [8, 0], "dtype": "f32")"), HasSubstr("in0: shape 8x0"));
  EXPECT_THAT(operand(R"("shape": [1073741824, 1073741824], "dtype": "f32")"),
              HasSubstr("product at most 2^40"));
}

TEST(CallJson, ErrorsNameThePlace) {
  const auto error = [](const std::string& members) {
    const auto call =
        parse_call_json(R"({"kernel_name": "k", "results": [], "operands": [])" + members + "}");
    return call ? "accepted" : call.error().message;
  };
  EXPECT_EQ(error(""), "accepted");
  EXPECT_THAT(error(R"(, "num_partitions": "2")"),
              HasSubstr("num_partitions: an integer is needed, not \"2\""));
  EXPECT_THAT(error(R"(, "num_partitions": 100000)"), HasSubstr("100000 devices; 1 to 128"));
  EXPECT_THAT(error(R"(, "num_partitions": 18446744073709551615)"), HasSubstr("an integer"));
  EXPECT_THAT(error(R"(, "aliases": [{"operand": 0}])"), HasSubstr("aliases[0].output is missing"));
  EXPECT_THAT(error(R"(, "aliases": 7)"), HasSubstr("aliases: a list is needed"));
  EXPECT_THAT(
      error(R"(, "backend_config_without_body": {"custom_call_config": {"collective_id": 1.5}})"),
      HasSubstr("backend_config_without_body.custom_call_config.collective_id: an integer"));
  for (const char* wrong :
       {R"({"kernel_name": 1, "operands": [], "results": []})",
        R"({"kernel_name": "k", "operands": [3], "results": []})",
        R"({"kernel_name": "k", "operands": [{"dtype": "f32", "shape": 8}], "results": []})",
        R"({"kernel_name": "k", "operands": [{"dtype": "f32", "shape": [8.5]}], "results": []})"}) {
    const auto call = parse_call_json(wrong);
    ASSERT_FALSE(call) << wrong;
    EXPECT_THAT(call.error().message, Not(HasSubstr("exception"))) << wrong;
    EXPECT_THAT(call.error().message, HasSubstr("needed")) << wrong;
  }
}

// Line and column, as for what is no JSON at all.
TEST(CallJson, ErrorsNameLineAndColumn) {
  const auto error = [](std::string_view json) {
    const auto call = parse_call_json(json);
    return call ? "accepted" : call.error().message;
  };
  const std::string head =
      "{\n  \"kernel_name\": \"k, \\\"{[\",\n  \"results\": [],\n  \"operands\": [\n    "
      "{\"dtype\": \"f32\", \"shape\": [8]},\n";
  EXPECT_EQ(error(head + "    {\"dtype\": \"f32\", \"shape\": [8, \"x\"]}]}"),
            "call.json: line 6, column 35, operands[1].shape[1]: an integer is needed, not \"x\"");
  EXPECT_THAT(error(head + "    {\"shape\": [8], \"dtype\": \"f33\"}]}"),
              HasSubstr("line 6, column 29, operands[1].dtype: unknown dtype 'f33'"));
  EXPECT_THAT(error(head + "    {\"dtype\": \"f32\"}]}"),
              HasSubstr("line 6, column 5: operands[1].shape is missing"));
  EXPECT_THAT(error(head + "    {\"dtype\": \"f32\", \"shape\": [0]}]}"),
              HasSubstr("line 6, column 31, operands[1].shape: in1: shape 0"));
  EXPECT_THAT(error(head + "    {\"dtype\": \"f32\", \"shape\": [8], \"color\": 9}]}"),
              HasSubstr("line 6, column 45, operands[1].color: memory space color 9"));
  EXPECT_THAT(
      error(head + "    {\"dtype\": \"f32\", \"shape\": [8]}],\n \"num_partitions\": 1000}"),
      HasSubstr("line 7, column 20, num_partitions: the call is for 1000 devices"));
  EXPECT_THAT(error(head + "    {\"dtype\": \"f32\", \"shape\": [8]}],\n \"aliases\": [ "
                           "{\"output\": [], \"operand\": 0}]}"),
              HasSubstr("line 7, column 15, aliases[0]: alias of result 0"));
  EXPECT_THAT(error("{\"results\": []}"), HasSubstr("line 1, column 1: kernel_name is missing"));
}

TEST(CallJson, AliasesAreCheckedBetweenBuffersThatExistAndAreAlike) {
  const auto error = [](const std::string& aliases) {
    const auto call = parse_call_json(R"({"kernel_name": "k",
      "operands": [{"shape": [8], "dtype": "f32"}, {"shape": [8], "dtype": "i32"}],
      "results": [{"shape": [8], "dtype": "f32"}], "aliases": )" +
                                      aliases + "}");
    return call ? "accepted" : call.error().message;
  };
  EXPECT_EQ(error(R"([{"output": [], "operand": 0}])"), "accepted");
  EXPECT_THAT(error(R"([{"output": [], "operand": 2}])"), HasSubstr("1 results and 2 operands"));
  EXPECT_THAT(error(R"([{"output": [0], "operand": 1}])"), HasSubstr("must be alike"));
  EXPECT_THAT(error(R"([{"output": [], "operand": 0}, {"output": [], "operand": 0}])"),
              HasSubstr("aliased twice"));
}

TEST(CallJson, SpacesComeByNameOrByColor) {
  const auto call = parse_call_json(R"({"kernel_name": "k", "results": [], "operands": [
      {"shape": [8], "dtype": "f32", "space": "smem"}, {"shape": [8], "dtype": "f32", "color": 0},
      {"shape": [8], "dtype": "f32", "color": null}]})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_EQ(call->operands[0].pinned, Space::kSmem);
  EXPECT_EQ(call->operands[0].type.space(), Space::kSmem);
  EXPECT_EQ(call->operands[1].pinned, Space::kHbm);
  EXPECT_EQ(call->operands[2].pinned, std::nullopt);
  EXPECT_EQ(call->operands[2].type.space(), Space::kAny);
}

// libtpu's own barrier before a kernel that communicates and names no barrier semaphore.
TEST(CallJson, TheCompilersBarrierFollowsFromTheConfig) {
  const auto barrier = [](const std::string& config) {
    return parse_call_json(R"({"kernel_name": "k", "results": [], "operands": [],
        "backend_config_without_body": {"custom_call_config": {)" +
                           config + "}}}")
        ->device_barrier;
  };
  EXPECT_TRUE(barrier(R"("has_communication": true)"));
  EXPECT_FALSE(barrier(R"("has_communication": true, "collective_id": 3)"));
  EXPECT_FALSE(barrier(R"("has_communication": true, "skip_device_barrier": true)"));
  EXPECT_FALSE(barrier(""));
}

}  // namespace
}  // namespace gridless::ir
