// DFlash2 configs: what is read, and what is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gridless/models/dflash2/step.h"
#include "gridless/models/model.h"

namespace gridless::models {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

Json draft_config() {
  return {{"model_type", "qwen3"},
          {"num_hidden_layers", 2},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"vocab_size", 320},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 4},
          {"head_dim", 16},
          {"sliding_window", 24},
          {"is_causal", false},
          {"layer_types", {"sliding_attention", "sliding_attention"}},
          {"rope_parameters", {{"rope_theta", 1e6}, {"rope_type", "default"}}},
          {"dflash_config",
           {{"block_size", 8},
            {"conv_kernel_size", 2},
            {"conv_group_size", 4},
            {"mask_token_id", 319},
            {"selector_rank", 16},
            {"selector_top_k", 16},
            {"target_layer_ids", {0, 3}}}}};
}

TEST(Dflash2Config, IsRead) {
  const auto c = dflash2_config(draft_config());
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->rope_theta, 1e6);
  EXPECT_EQ(c->window, 24);
  EXPECT_EQ(c->block, 8);
  EXPECT_EQ(c->mask_token, 319);
  EXPECT_EQ(c->taps, (std::vector<int64_t>{0, 3}));
  EXPECT_EQ(c->group(), 2);
}

TEST(Dflash2Config, WhatIsNotSupportedIsNamed) {
  struct Bad {
    const char* path;  // a JSON pointer
    Json value;
    const char* message;
  };
  const Bad cases[] = {{"/is_causal", true, "'is_causal'"},
                       {"/attention_bias", true, "'attention_bias'"},
                       {"/hidden_act", "gelu", "'hidden_act'"},
                       {"/layer_types/1", "full_attention", "full_attention"},
                       {"/layer_types", 3, "'layer_types'"},
                       {"/rope_parameters/rope_type", "yarn", "'yarn'"},
                       {"/rope_parameters", "none", "'rope_parameters'"},
                       {"/num_key_value_heads", 3, "do not divide"},
                       {"/head_dim", 15, "odd"},
                       {"/sliding_window", nullptr, "'sliding_window'"},
                       {"/vocab_size", 1 << 25, "too large"},
                       {"/dflash_config/block_size", 1, "a block of 1"},
                       {"/dflash_config/block_size", 17, "a block of 17"},
                       {"/dflash_config/conv_kernel_size", 3, "3 taps"},
                       {"/dflash_config/conv_group_size", 3, "conv_group_size 3"},
                       {"/dflash_config/conv_group_size", 128, "conv_group_size 128"},
                       {"/dflash_config/mask_token_id", 320, "mask_token_id 320"},
                       {"/dflash_config/mask_token_id", -1, "'mask_token_id'"},
                       {"/dflash_config/selector_top_k", 65, "selector_top_k 65"},
                       {"/dflash_config/selector_rank", "16", "'selector_rank'"},
                       {"/dflash_config/target_layer_ids", Json::array(), "'target_layer_ids'"},
                       {"/dflash_config/target_layer_ids/0", -2, "'target_layer_ids'"},
                       {"/dflash_config", 5, "'dflash_config'"}};
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.path);
    Json config = draft_config();
    config[Json::json_pointer(bad.path)] = bad.value;
    const auto c = dflash2_config(config);
    ASSERT_FALSE(c);
    EXPECT_THAT(c.error().message, HasSubstr(bad.message));
  }
}

TEST(Dflash2Config, IsNoModelOfItsOwn) {
  const auto model = model_of(draft_config());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("--draft"));
}

TEST(Dflash2Sharding, CoversHeadsAndFeatures) {
  const Dflash2Config m = *dflash2_config(draft_config());
  for (const int cores : {1, 2, 4, 8, 16}) {
    const auto s = shard_dflash2(m, cores);
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_GE(s->feature_panels * cores, 2);
    EXPECT_EQ(s->vocab * cores, m.vocab);
  }
  EXPECT_FALSE(shard_dflash2(m, 3));
  EXPECT_FALSE(shard_dflash2(m, 0));
}

}  // namespace
}  // namespace gridless::models
