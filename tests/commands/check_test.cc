// gridless check: whole steps at their real size, and named scalar sources from a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gridless/weights/safetensors.h"
#include "tests/commands/run_command.h"

namespace gridless::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json check(std::vector<std::string> arguments, int status) {
  arguments.insert(arguments.begin(), "check");
  arguments.emplace_back("--json");
  const Outcome outcome = run_command(arguments);
  EXPECT_EQ(outcome.status, status) << outcome.err;
  return outcome.out.empty() ? json() : json::parse(outcome.out);
}

TEST(Check, AStepOfLlama8BIsProvedOnEightCores) {
  const json report = check({"model:llama_8b?rows=4&context=5000&layers=2", "--cores", "8"}, 0);
  EXPECT_EQ(report["certificate"], true) << report["notes"];
  EXPECT_EQ(report["cores"], 8);
  EXPECT_GT(report["events"], 10000);
}

TEST(Check, RowTablesOfEverySeedAreProved) {
  for (const char* use : {"decode", "verify"}) {
    const std::string target = std::string("model:smollm2?rows=8&context=700&layers=1&use=") + use;
    const json report = check({target, "--seeds", "8", "--cores", "2"}, 0);
    EXPECT_EQ(report["certificate"], true) << use << report["notes"];
  }
}

TEST(Check, TheSmallLayersWithValuesAreTheLargeOnesWithout) {
  EXPECT_EQ(check({"kernel:19_layers", "--cores", "4"}, 0)["certificate"], true);
  const json large = check({"kernel:19_layers?layers=6&chunks=8&tiles=512", "--cores", "4"}, 0);
  EXPECT_EQ(large["certificate"], true) << large["notes"];
}

class Sources : public ::testing::Test {
 protected:
  // Numbers of experts for lesson 18, [row, choice].
  std::string file(const std::vector<int32_t>& ids) {
    const std::string path = ::testing::TempDir() + "sources.safetensors";
    const ByteView bytes(reinterpret_cast<const uint8_t*>(ids.data()), ids.size() * 4);
    const auto rows = static_cast<int64_t>(ids.size() / 2);
    const std::vector<weights::TensorToWrite> tensors = {
        {.name = "expert", .dtype = weights::Dtype::kI32, .shape = {rows, 2}, .bytes = bytes}};
    EXPECT_TRUE(weights::write_safetensors(path, tensors));
    return path;
  }
  std::vector<int32_t> ids_ = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 62, 63};
};

TEST_F(Sources, AreDrivenByPatterns) {
  const json report = check({"kernel:18_named_source", "--scalars-only"}, 0);
  EXPECT_EQ(report["certificate"], true);
  EXPECT_THAT(report["notes"].dump(), HasSubstr("source expert, 0 to 63: 16 values, from seed 8"));
}

TEST_F(Sources, AreDrivenByAFile) {
  const json report =
      check({"kernel:18_named_source", "--scalars-only", "--scalars", file(ids_)}, 0);
  EXPECT_EQ(report["certificate"], true);
  EXPECT_THAT(report["notes"].dump(), HasSubstr("from the file"));
}

TEST_F(Sources, OfAFileAreHeldToTheirDeclaration) {
  ids_[3] = ids_[2];
  const json report =
      check({"kernel:18_named_source", "--scalars-only", "--scalars", file(ids_)}, 1);
  EXPECT_EQ(report["findings"][0]["kind"], "assertion");
  EXPECT_THAT(report["findings"][0]["location"].dump(), HasSubstr("18_named_source.cc"));
}

TEST_F(Sources, OfAnotherShapeAreAnError) {
  ids_.resize(8);
  const Outcome wrong =
      run_command({"check", "kernel:18_named_source", "--scalars-only", "--scalars", file(ids_)});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("it takes 8x2"));
}

}  // namespace
}  // namespace gridless::testing
