// GGUF metadata that changes what a model computes: honoured as llama.cpp does, or refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "gridless/models/llama/config.h"
#include "gridless/weights/gguf.h"
#include "gridless/weights/gguf_names.h"
#include "tests/weights/builders.h"

namespace gridless::models {
namespace {

using ::testing::HasSubstr;
using weights::testing::Bytes;
using weights::testing::GgufBuilder;

// A model of one layer with two heads of 16, and what `more` adds to its metadata.
Result<LlamaConfig> config_with(const std::function<void(GgufBuilder&)>& more) {
  GgufBuilder b;
  b.text("general.architecture", "llama");
  b.u32("llama.block_count", 1).u32("llama.embedding_length", 32).u32("llama.context_length", 64);
  b.u32("llama.attention.head_count", 2).u32("llama.feed_forward_length", 64);
  more(b);
  b.tensor("token_embd.weight", {32, 3}, 8, Bytes(3 * 34));
  const Bytes bytes = b.build();
  const auto gguf = weights::Gguf::parse(bytes);
  EXPECT_TRUE(gguf) << gguf.error().message;
  return llama_config(weights::config_of(*gguf));
}

std::string error_with(const char* key, uint32_t value) {
  const auto config = config_with([&](GgufBuilder& b) { b.u32(key, value); });
  return config ? "" : config.error().message;
}

TEST(GgufConfig, WhatIsNotSupportedIsRefusedByItsKey) {
  EXPECT_THAT(error_with("llama.rope.dimension_count", 8),
              HasSubstr("'llama.rope.dimension_count' is 8 where heads have 16"));
  EXPECT_THAT(error_with("llama.attention.value_length", 32),
              HasSubstr("'llama.attention.value_length' is 32"));
  EXPECT_THAT(error_with("llama.expert_count", 8), HasSubstr("'llama.expert_count' is 8"));
}

TEST(GgufConfig, TheSameKeysMayStateWhatHoldsAnyway) {
  EXPECT_EQ(error_with("llama.rope.dimension_count", 16), "");
  EXPECT_EQ(error_with("llama.attention.value_length", 16), "");
  EXPECT_EQ(error_with("llama.expert_count", 0), "");
}

TEST(GgufConfig, RopeScaling) {
  const auto factor = [](const std::function<void(GgufBuilder&)>& more) {
    const auto config = config_with(more);
    EXPECT_TRUE(config) << config.error().message;
    return config ? config->rope_linear_factor : 0;
  };
  const char* const type = "llama.rope.scaling.type";
  const char* const by = "llama.rope.scaling.factor";
  const char* const old = "llama.rope.scale_linear";
  EXPECT_EQ(factor([&](GgufBuilder&) {}), 1);
  EXPECT_EQ(factor([&](GgufBuilder& b) { b.f32(old, 4); }), 4);
  EXPECT_EQ(factor([&](GgufBuilder& b) { b.f32(by, 2); }), 2);  // no type: linear
  EXPECT_EQ(factor([&](GgufBuilder& b) { b.f32(by, 2).f32(old, 4); }), 2);
  EXPECT_EQ(factor([&](GgufBuilder& b) { b.f32(by, 0).f32(old, 4); }), 4);
  EXPECT_EQ(factor([&](GgufBuilder& b) { b.f32(by, 0); }), 1);
  EXPECT_EQ(factor([&](GgufBuilder& b) { b.text(type, "linear").f32(by, 8); }), 8);
  EXPECT_EQ(factor([&](GgufBuilder& b) { b.text(type, "none").f32(by, 8); }), 1);
  EXPECT_EQ(factor([&](GgufBuilder& b) {
              b.f32(by, 8).tensor("rope_freqs.weight", {8}, 0, Bytes(32, 0x3f));
            }),
            8);
  const auto yarn = config_with([&](GgufBuilder& b) { b.text(type, "yarn").f32(by, 8); });
  ASSERT_FALSE(yarn);
  EXPECT_THAT(yarn.error().message, HasSubstr("'yarn' is not supported"));
}

}  // namespace
}  // namespace gridless::models
