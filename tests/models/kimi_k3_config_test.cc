// Kimi K3 configs and shardings: what is read, and what is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gridless/base/mapped_file.h"
#include "gridless/models/kimi_k3/step.h"

namespace gridless::models {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

Json golden(const std::string& model) {
  return Json::parse(
      read_text_file(std::string(GRIDLESS_TEST_DATA) + "/kimi_k3_tiny/" + model + "/config.json")
          .value());
}

TEST(KimiK3Config, IsReadFromTheRootOrFromTextConfig) {
  const Json whole = golden("a");
  for (const Json& config : {whole, whole["text_config"]}) {
    const auto c = kimi_k3_config(config);
    ASSERT_TRUE(c) << c.error().message;
    EXPECT_EQ(c->delta_dim, 32);  // of linear_attn_config: the outer head_dim is another thing
    EXPECT_EQ(c->period, 4);
    EXPECT_EQ(c->attention_layers(), 3);  // 3, 7 and the last
    EXPECT_TRUE(c->attends(8));
    EXPECT_FALSE(c->attends(4));
    EXPECT_EQ(c->shared_inner, 128);
    EXPECT_EQ(c->residual_blocks(), 3);
  }
}

TEST(KimiK3Config, RefusesWhatAnotherStepWouldNeed) {
  const auto message = [](const std::string& path, Json value) {
    Json config = golden("a");
    config["text_config"][Json::json_pointer(path)] = std::move(value);
    const auto c = kimi_k3_config(config);
    return c ? std::string("accepted") : c.error().message;
  };
  EXPECT_EQ(message("/rms_norm_eps", 1e-6), "accepted");
  EXPECT_THAT(message("/mla_use_nope", false), HasSubstr("mla_use_nope"));
  EXPECT_THAT(message("/moe_router_activation_func", "softmax"), HasSubstr("softmax"));
  EXPECT_THAT(message("/hidden_act", "silu"), HasSubstr("hidden_act"));
  EXPECT_THAT(message("/num_expert_group", 2), HasSubstr("num_expert_group"));
  EXPECT_THAT(message("/routed_scaling_factor", 2.5), HasSubstr("routed_scaling_factor"));
  EXPECT_THAT(message("/first_k_dense_replace", 3), HasSubstr("first_k_dense_replace"));
  EXPECT_THAT(message("/quantization_config/format", "pack-quantized"), HasSubstr("mxfp4"));
  EXPECT_THAT(message("/quantization_config", 3), HasSubstr("no object"));
  EXPECT_THAT(message("/linear_attn_config/gate_lower_bound", nullptr), HasSubstr("lower_bound"));
  EXPECT_THAT(message("/linear_attn_config/use_full_rank_gate", false), HasSubstr("full_rank"));
  EXPECT_THAT(message("/linear_attn_config/full_attn_layers", Json{4, 8}), HasSubstr("the last"));
  EXPECT_THAT(message("/linear_attn_config/full_attn_layers", Json{4, 7, 9}), HasSubstr("every"));
  EXPECT_THAT(message("/linear_attn_config/full_attn_layers", Json{"x"}), HasSubstr("every"));
  EXPECT_THAT(message("/linear_attn_config/full_attn_layers", Json{1, 2}), HasSubstr("[1,2]"));
  EXPECT_THAT(message("/linear_attn_config/head_dim", 256), HasSubstr("at most 128"));
  EXPECT_THAT(message("/linear_attn_config", nullptr), HasSubstr("linear_attn_config"));
  EXPECT_THAT(message("/num_experts_per_token", 33), HasSubstr("33 of 32"));
  EXPECT_THAT(message("/hidden_size", nullptr), HasSubstr("hidden_size"));
  EXPECT_THAT(message("/tie_word_embeddings", true), HasSubstr("tie_word"));
}

TEST(KimiK3Sharding, SpreadsExpertsOverGroupsOfCores) {
  const auto c = *kimi_k3_config(golden("c_tp32"));
  const auto shard = [&](int cores, int64_t groups) {
    StepShape step;
    step.expert_groups = groups;
    return shard_kimi_k3(c, cores, step);
  };
  EXPECT_EQ(shard(32, 0)->groups, 2);  // at most 16 cores share an expert
  EXPECT_EQ(shard(32, 2)->expert.inner, 32);
  EXPECT_EQ(shard(32, 8)->experts, 2);
  EXPECT_EQ(shard(8, 0)->groups, 1);
  // 512 channels over 32 cores would cut blocks of 32.
  EXPECT_THAT(shard(32, 1).error().message, HasSubstr("whole blocks"));
  EXPECT_THAT(shard(32, 3).error().message, HasSubstr("3 groups"));
  EXPECT_THAT(shard(32, 32).error().message, HasSubstr("16 experts"));
  EXPECT_THAT(shard(3, 0).error().message, HasSubstr("vocabulary of 512"));
  EXPECT_THAT(shard(64, 0).error().message, HasSubstr("attention heads of 32"));
  EXPECT_THAT(shard(0, 0).error().message, HasSubstr("0 cores"));
}

TEST(KimiK3Sharding, OfTheFullShapeIsEp2Tp16On32Cores) {
  const auto c = kimi_k3_config(find_model("kimi_k3")->facts);
  EXPECT_EQ(c.attention_layers(), 24);
  EXPECT_EQ(c.delta_layers(), 69);
  EXPECT_EQ(c.residual_blocks(), 8);
  const auto s = shard_kimi_k3(c, 32, {});
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->groups, 2);
  EXPECT_EQ(s->experts, 448);
  EXPECT_EQ(s->expert.inner, 192);
  EXPECT_EQ(s->latent.heads, 3);
  // Codes and scales of 192 channels: 1.10 MB, of which nothing is padding but that of scales.
  EXPECT_LE(s->expert.slab_rows() * 512, 1'110'000);
}

}  // namespace
}  // namespace gridless::models
