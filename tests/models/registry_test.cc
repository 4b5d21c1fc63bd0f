#include <gtest/gtest.h>

#include <set>

#include "gridless/models/model.h"

namespace gridless::models {
namespace {

// SmolLM2's 272 tensors hold this many numbers; the others are published with this many.
TEST(Registry, ParameterCountsAreTheCheckpoints) {
  const auto parameters = [](const char* name) {
    return model_of(find_model(name)->facts)->parameters();
  };
  EXPECT_EQ(parameters("smollm2"), 134'515'008);
  EXPECT_EQ(parameters("llama_8b"), 8'030'261'248);
  EXPECT_EQ(parameters("qwen3_8_27b"), 26'895'998'464);
  EXPECT_EQ(parameters("qwen3_5_0_8b"), 752'393'024);
  EXPECT_NEAR(static_cast<double>(parameters("kimi_k3")), 2.779e12, 5e8);  // published so
  EXPECT_EQ(parameters("qwen3_8_27b_dflash2"), 1'924'404'480);
}

TEST(Registry, NamesAreDistinctAndFound) {
  std::set<std::string_view> names;
  for (const RegisteredModel& model : registered_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(find_model(model.name), &model);
    EXPECT_EQ(model.facts.heads % model.facts.kv_heads, 0) << model.name;
  }
  EXPECT_EQ(find_model("no such model"), nullptr);
}

TEST(Registry, UnknownModelListsTheKnownOnes) {
  const auto path = resolve_weights("no-such-model");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().message,
            "there is no model or file 'no-such-model'; the models are smollm2, llama_8b, "
            "qwen3_8_27b, qwen3_5_0_8b, kimi_k3, qwen3_8_27b_dflash2");
}

TEST(Registry, ShapeWithoutWeightsAsksForACheckpoint) {
  const auto path = resolve_weights("llama_8b");
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().message,
            "model 'llama_8b' is only a shape, without weights; give the path of a checkpoint");
}

TEST(Registry, PathIsTakenAsItIs) {
  EXPECT_EQ(resolve_weights(GRIDLESS_SOURCE_DIR).value(), GRIDLESS_SOURCE_DIR);
}

}  // namespace
}  // namespace gridless::models
