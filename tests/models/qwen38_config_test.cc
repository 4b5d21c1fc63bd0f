// Qwen3.5/3.6/3.8 configs: what is read, and what is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gridless/models/qwen3_8/step.h"
#include "gridless/models/qwen3_8/weights.h"

namespace gridless::models {
namespace {

using Json = nlohmann::json;

Json text_config() {
  return {{"model_type", "qwen3_5_text"},
          {"num_hidden_layers", 8},
          {"hidden_size", 64},
          {"intermediate_size", 128},
          {"vocab_size", 512},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 4},
          {"head_dim", 32},
          {"linear_num_key_heads", 4},
          {"linear_num_value_heads", 12},
          {"linear_key_head_dim", 16},
          {"linear_value_head_dim", 16},
          {"rope_parameters", {{"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}}};
}

TEST(Qwen38Config, IsReadFromTheRootOrFromTextConfig) {
  for (const Json& config :
       {text_config(), Json{{"model_type", "qwen3_5"}, {"text_config", text_config()}}}) {
    const auto c = qwen38_config(config);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->rotary_dims, 8);
    EXPECT_EQ(c->rope_theta, 1e6);
    EXPECT_EQ(c->period, (std::vector<bool>{false, false, false, true}));  // every fourth
    EXPECT_EQ(c->periods(), 2);
  }
}

TEST(Qwen38Config, TakesAnyPatternOfLayers) {
  Json config = text_config();
  Json& kinds = config["layer_types"] = Json::array();
  for (int i = 0; i < 8; ++i) kinds.push_back(i % 2 == 0 ? "full_attention" : "linear_attention");
  auto c = qwen38_config(config);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->period, (std::vector<bool>{true, false}));
  kinds[7] = "full_attention";  // no period but the whole
  c = qwen38_config(config);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->period.size(), 8u);
  const auto runs = layer_runs(*c);
  ASSERT_EQ(runs.size(), 7u);  // F L F L F L FF
  EXPECT_EQ(runs[5].before, 2);
  EXPECT_EQ(runs[6].count, 2);
  EXPECT_EQ(runs[6].first, 6);
}

TEST(Qwen38Config, RefusesWhatAnotherStepWouldNeed) {
  const auto message = [](const char* key, Json value) {
    Json config = text_config();
    config[key] = std::move(value);
    const auto c = qwen38_config(config);
    return c ? std::string("accepted") : c.error().message;
  };
  using testing::HasSubstr;
  EXPECT_THAT(message("attention_bias", true), HasSubstr("attention_bias"));
  EXPECT_THAT(message("attn_output_gate", false), HasSubstr("attn_output_gate"));
  EXPECT_THAT(message("hidden_act", "gelu"), HasSubstr("hidden_act"));
  EXPECT_THAT(message("output_gate_type", "sigmoid"), HasSubstr("output_gate_type"));
  EXPECT_THAT(message("linear_conv_kernel_dim", 3), HasSubstr("3 taps"));
  EXPECT_THAT(message("rope_parameters", {{"rope_type", "yarn"}}), HasSubstr("yarn"));
  EXPECT_THAT(message("rope_parameters", 5), HasSubstr("rope_parameters"));
  EXPECT_THAT(message("layer_types", {"full_attention"}), HasSubstr("list of 8"));
  EXPECT_THAT(message("layer_types", Json::array_t(8, "mamba")), HasSubstr("mamba"));
  EXPECT_THAT(message("linear_num_value_heads", 6), HasSubstr("6 value heads"));
  EXPECT_THAT(message("num_key_value_heads", 3), HasSubstr("8 query heads"));
  EXPECT_THAT(message("linear_key_head_dim", 256), HasSubstr("at most 128"));
  EXPECT_THAT(message("hidden_size", nullptr), HasSubstr("hidden_size"));
  EXPECT_THAT(message("output_gate_type", "silu"), "accepted");
  EXPECT_THAT(qwen38_config(Json{{"model_type", "qwen3_next"}}).error().message,
              HasSubstr("qwen3_5"));
}

TEST(Qwen38Sharding, SplitsKeyHeadsAndThenTheirValueHeads) {
  Json config = text_config();
  config["num_key_value_heads"] = 8;
  const auto c = qwen38_config(config);
  for (const auto& [cores, keys, values] : {std::tuple{1, 4, 12}, {2, 2, 6}, {4, 1, 3}}) {
    const auto s = shard_qwen38(*c, cores);
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_EQ(s->delta.key_heads, keys);
    EXPECT_EQ(s->delta.value_heads, values);
  }
  EXPECT_THAT(shard_qwen38(*c, 8).error().message,
              testing::HasSubstr("4 key heads with 3 value heads each"));
  config["linear_num_value_heads"] = 16;
  EXPECT_EQ(shard_qwen38(*qwen38_config(config), 16)->delta.value_heads, 1);
}

TEST(Qwen38Weights, TurnedDimensionsComeFirstInEachHalf) {
  const auto c = qwen38_config(text_config());
  std::vector<int64_t> order;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t i = 0; i < 16; ++i) order.push_back(rotary_element(*c, half, i));
  // RoPE turns (0, 4), (1, 5), ...: they face each other.
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
    EXPECT_EQ(order[static_cast<size_t>(16 + i)], i + 4);
  }
  std::ranges::sort(order);
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

}  // namespace
}  // namespace gridless::models
