// Llama configs: what is read, what is refused and with which words, and RoPE frequencies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "gridless/models/llama/config.h"

namespace gridless::models {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json golden(const std::string& model) {
  std::ifstream in(std::string(GRIDLESS_TEST_DATA) + "/llama_tiny/" + model + "/config.json");
  return json::parse(in);
}

TEST(LlamaConfig, ReadsTheGoldenConfigs) {
  const auto c = llama_config(golden("tied_llama3rope"));
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->layers, 4);
  EXPECT_EQ(c->hidden, 96);
  EXPECT_EQ(c->heads, 6);
  EXPECT_EQ(c->kv_heads, 2);
  EXPECT_EQ(c->group(), 3);
  EXPECT_EQ(c->head_dim, 16);
  EXPECT_EQ(c->ffn, 192);
  EXPECT_EQ(c->vocab, 512);
  EXPECT_EQ(c->context, 2048);
  EXPECT_EQ(c->rms_eps, 1e-5);
  EXPECT_TRUE(c->tied_head);
  EXPECT_EQ(c->eos, std::vector<int64_t>{2});
  EXPECT_FALSE(llama_config(golden("untied"))->tied_head);
}

TEST(LlamaConfig, OldConfigsLeaveOutWhatFollows) {
  json j = golden("untied");
  for (const char* key : {"num_key_value_heads", "head_dim", "rope_theta", "eos_token_id",
                          "rope_scaling", "tie_word_embeddings"}) {
    j.erase(key);
  }
  const auto c = llama_config(j);
  ASSERT_TRUE(c) << c.error().message;
  EXPECT_EQ(c->kv_heads, 8);
  EXPECT_EQ(c->head_dim, 8);  // hidden / heads
  EXPECT_EQ(c->rope_theta, 10000);
  EXPECT_TRUE(c->eos.empty());
  j["eos_token_id"] = {7, 9};
  EXPECT_EQ(llama_config(j)->eos, (std::vector<int64_t>{7, 9}));
}

TEST(LlamaConfig, NewConfigsHoldThetaAndScalingTogether) {
  json j = golden("tied_llama3rope");
  json rope = j["rope_scaling"];
  rope["rope_theta"] = j["rope_theta"];
  const auto expected = llama_config(j)->rope_frequencies();
  j.erase("rope_scaling");
  j.erase("rope_theta");
  j["rope_parameters"] = rope;
  EXPECT_EQ(llama_config(j)->rope_frequencies(), expected);
}

struct Bad {
  const char* key;
  json value;
  const char* says;
};
void PrintTo(const Bad& b, std::ostream* out) { *out << b.key << " = " << b.value; }

class BadConfig : public testing::TestWithParam<Bad> {};

TEST_P(BadConfig, IsRefusedByTheNameOfTheKey) {
  json j = golden("tied_llama3rope");
  if (GetParam().value.is_discarded()) {
    j.erase(GetParam().key);
  } else {
    j[json::json_pointer(std::string("/") + GetParam().key)] = GetParam().value;
  }
  const auto c = llama_config(j);
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().message, HasSubstr(GetParam().says));
  EXPECT_EQ(c.error().kind, Error::Kind::kInput);
}

const json kMissing(json::value_t::discarded);
INSTANTIATE_TEST_SUITE_P(
    Keys, BadConfig,
    testing::Values(
        Bad{"model_type", "qwen3", "architecture 'qwen3' is not supported"},
        Bad{"model_type", kMissing, "architecture '(none named)' is not supported"},
        Bad{"model_type", 3, "'model_type'"}, Bad{"unsupported", "no experts", "no experts"},
        Bad{"num_hidden_layers", kMissing, "no 'num_hidden_layers'"},
        Bad{"hidden_size", kMissing, "no 'hidden_size'"},
        Bad{"num_attention_heads", kMissing, "no 'num_attention_heads'"},
        Bad{"intermediate_size", kMissing, "no 'intermediate_size'"},
        Bad{"vocab_size", kMissing, "no 'vocab_size'"},
        Bad{"hidden_size", 0, "'hidden_size' in the config is 0"},
        Bad{"hidden_size", -64, "'hidden_size'"}, Bad{"hidden_size", "64", "'hidden_size'"},
        Bad{"hidden_size", 64.5, "'hidden_size'"},
        Bad{"vocab_size", int64_t{1} << 40, "'vocab_size'"},
        Bad{"num_key_value_heads", 4, "6 query heads do not divide among 4"},
        Bad{"num_key_value_heads", 12, "6 query heads do not divide among 12"},
        Bad{"head_dim", 15, "head_dim 15 is odd"}, Bad{"head_dim", 0, "'head_dim'"},
        Bad{"rms_norm_eps", "small", "'rms_norm_eps'"}, Bad{"rms_norm_eps", -1, "'rms_norm_eps'"},
        Bad{"rope_theta", json::array(), "'rope_theta'"}, Bad{"rope_theta", 0, "'rope_theta'"},
        Bad{"attention_bias", true, "'attention_bias'"}, Bad{"mlp_bias", true, "'mlp_bias'"},
        Bad{"hidden_act", "gelu", "'hidden_act'"},
        Bad{"tie_word_embeddings", "yes", "'tie_word_embeddings'"},
        Bad{"rope_scaling", 8, "'rope_scaling'"},
        Bad{"rope_scaling/rope_type", "yarn", "type 'yarn' is not supported"},
        Bad{"rope_scaling/rope_type", 5, "'rope_type'"},
        Bad{"rope_scaling/factor", "8", "'factor'"}, Bad{"rope_scaling/factor", 0, "'factor'"},
        Bad{"rope_scaling/low_freq_factor", 0, "'low_freq_factor'"},
        Bad{"rope_scaling/high_freq_factor", 1.0, "'high_freq_factor'"},
        Bad{"rope_scaling/original_max_position_embeddings", -5,
            "'original_max_position_embeddings'"}));

TEST(LlamaConfig, AConfigThatIsNoObjectIsRefused) {
  for (const json& j : {json(), json::array({1}), json("llama")})
    EXPECT_THAT(llama_config(j).error().message, HasSubstr("not an object"));
}

TEST(LlamaConfig, HeadsFewerThanHiddenUnitsGiveNoHeadWidth) {
  json j = golden("untied");
  j.erase("head_dim");
  j["num_attention_heads"] = 128;  // of 64 hidden units
  j["num_key_value_heads"] = 128;
  EXPECT_THAT(llama_config(j).error().message, HasSubstr("head_dim"));
}

TEST(RopeFrequencies, ArePowersOfTheta) {
  const auto c = llama_config(golden("untied"));
  const std::vector<float> f = c->rope_frequencies();
  ASSERT_EQ(f.size(), 8u);
  for (size_t i = 0; i < f.size(); ++i)
    EXPECT_FLOAT_EQ(f[i], static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / 8)));
}

// Of the golden config: theta 5e5, head 16, factor 8, bands at wavelengths 64 / 4 and 64 / 1.
TEST(RopeFrequencies, Llama3ScalesThreeBands) {
  const std::vector<float> f = llama_config(golden("tied_llama3rope"))->rope_frequencies();
  ASSERT_EQ(f.size(), 8u);
  int bands[3] = {};
  for (size_t i = 0; i < f.size(); ++i) {
    const double plain = std::pow(5e5, -static_cast<double>(i) / 8);
    const double waves = 64 * plain / (2 * std::numbers::pi);  // in the original context
    double expected = plain;
    if (waves < 1) {
      expected = plain / 8;
      ++bands[0];
    } else if (waves <= 4) {
      const double t = (waves - 1) / 3;
      expected = plain * (t + (1 - t) / 8);
      ++bands[1];
    } else {
      ++bands[2];
    }
    EXPECT_FLOAT_EQ(f[i], static_cast<float>(expected)) << i;
  }
  for (int n : bands) EXPECT_GT(n, 0);
}

TEST(RopeFrequencies, LinearScalingAndFactorsDivide) {
  json j = golden("untied");
  const std::vector<float> plain = llama_config(j)->rope_frequencies();
  j["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  const std::vector<float> linear = llama_config(j)->rope_frequencies();
  j["rope_scaling"] = {{"rope_type", "factors"}, {"factors", {1, 2, 3, 4, 5, 6, 7, 8}}};
  const std::vector<float> factors = llama_config(j)->rope_frequencies();
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_FLOAT_EQ(linear[i], plain[i] / 4);
    EXPECT_FLOAT_EQ(factors[i], plain[i] / static_cast<float>(i + 1));
  }
  j["rope_scaling"]["factor"] = 2;
  const std::vector<float> both = llama_config(j)->rope_frequencies();
  for (size_t i = 0; i < plain.size(); ++i)
    EXPECT_FLOAT_EQ(both[i], plain[i] / static_cast<float>(2 * (i + 1)));
  j["rope_scaling"]["factors"] = {1, 2};
  EXPECT_THAT(llama_config(j).error().message, HasSubstr("2 RoPE factors for a head of 16"));
  j["rope_scaling"]["factors"] = {1, 2, 3, 0, 5, 6, 7, 8};
  EXPECT_THAT(llama_config(j).error().message, HasSubstr("RoPE factor is 0"));
  j["rope_scaling"]["factors"] = "none";
  EXPECT_THAT(llama_config(j).error().message, HasSubstr("'factors'"));
}

}  // namespace
}  // namespace gridless::models
