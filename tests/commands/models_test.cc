#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"

namespace gridless::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The row of a model in `gridless models --json`.
nlohmann::json row(const std::string& name, const RunOptions& options = {}) {
  const Outcome result = run_command({"models", "--json"}, options);
  EXPECT_EQ(result.status, 0) << result.err;
  const nlohmann::json object = nlohmann::json::parse(result.out);
  for (const nlohmann::json& model : object.at("models")) {
    if (model.at("name") == name) return model;
  }
  ADD_FAILURE() << name << " is not in " << result.out;
  return {};
}

TEST(ModelsCommand, TableHasALinePerModel) {
  const Outcome result = run_command({"models"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("\nsmollm2 "));
  EXPECT_THAT(result.out, HasSubstr("\nllama_8b "));
  EXPECT_THAT(result.out, HasSubstr("134.5 M"));
}

// Whatever its operands are called: tables for a launch of it can be made.
TEST(ModelsCommand, EveryModelHasAPredictedTime) {
  const nlohmann::json all = nlohmann::json::parse(run_command({"models", "--json"}).out);
  EXPECT_GE(all.at("models").size(), 6u);
  for (const nlohmann::json& model : all.at("models")) {
    const std::string name = model["name"];
    const int layers = std::min(model["layers"].get<int>(), 8);
    const std::string target =
        "model:" + name + "?rows=1&context=256&layers=" + std::to_string(layers);
    const Outcome result = run_command({"time", target, "--cores", "8", "--json"});
    ASSERT_EQ(result.status, 0) << name << ": " << result.err;
    EXPECT_GT(nlohmann::json::parse(result.out)["ms"].get<double>(), 0) << name;
  }
}

TEST(ModelsCommand, JsonGivesTheShape) {
  const nlohmann::json model = row("llama_8b");
  EXPECT_EQ(model.at("parameters"), 8'030'261'248);
  EXPECT_EQ(model.at("layers"), 32);
  EXPECT_EQ(model.at("kv_heads"), 8);
  EXPECT_EQ(model.at("fetched"), false);
  EXPECT_TRUE(model.at("path").is_null());
}

TEST(ModelsCommand, FindsWeightsInTheFolderTheEnvironmentNames) {
  const TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  const fs::path file = folder / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf";
  fs::create_directory(folder / "smollm2");
  std::ofstream(file) << "twelve bytes";
  const nlohmann::json model =
      row("smollm2", {.environment = {"GRIDLESS_MODELS=" + folder.string()}});
  EXPECT_EQ(model.at("fetched"), true);
  EXPECT_EQ(model.at("path"), file.string());
  EXPECT_EQ(model.at("bytes"), 12);
  const fs::path below = folder / "smollm2";
  const std::string direct = "GRIDLESS_MODELS=" + below.string();
  EXPECT_EQ(row("smollm2", {.environment = {direct}}).at("path"), file.string());
}

}  // namespace
}  // namespace gridless::testing
