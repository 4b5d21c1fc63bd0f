// Every head, inner channel and logit of the model lies on exactly one core; the rest is zero.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "gridless/models/llama/weights.h"

namespace gridless::models {
namespace {

LlamaConfig config(int64_t heads, int64_t kv_heads) {
  LlamaConfig c;
  c.layers = 2;
  c.hidden = 96;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.head_dim = 16;
  c.ffn = 200;
  c.vocab = 1024;
  return c;
}

TEST(LlamaSharding, EveryQueryHeadIsOnOneCoreWithItsKeyValueHead) {
  for (const auto& [heads, kv] : {std::pair<int64_t, int64_t>{9, 3},
                                  {8, 4},
                                  {6, 2},
                                  {16, 8},
                                  {32, 8},
                                  {5, 5},
                                  {7, 1},
                                  {12, 3},
                                  {64, 8}}) {
    for (const int cores : {1, 2, 4, 8, 16}) {
      SCOPED_TRACE(testing::Message() << heads << "/" << kv << " heads, " << cores << " cores");
      const LlamaConfig c = config(heads, kv);
      const auto s = shard_llama(c, cores);
      ASSERT_TRUE(s) << s.error().message;
      std::map<int64_t, int> query_uses, kv_uses;
      for (int core = 0; core < cores; ++core) {
        const auto of = s->attention.heads_of(core);
        ASSERT_EQ(static_cast<int64_t>(of.kv.size()), s->attention.shape.heads);
        ASSERT_EQ(static_cast<int64_t>(of.q.size()), s->attention.shape.groups);
        for (const int64_t h : of.kv) kv_uses[h] += h >= 0;
        for (const auto& group : of.q) {
          ASSERT_EQ(group.size(), of.kv.size());
          for (size_t j = 0; j < group.size(); ++j) {
            if (group[j] < 0) continue;
            ++query_uses[group[j]];
            EXPECT_EQ(group[j] / c.group(), of.kv[j]);
          }
        }
      }
      kv_uses.erase(-1);
      EXPECT_EQ(static_cast<int64_t>(query_uses.size()), heads);
      for (const auto& [head, uses] : query_uses) {
        EXPECT_EQ(uses, 1) << head;
        EXPECT_LT(head, heads);
      }
      EXPECT_EQ(static_cast<int64_t>(kv_uses.size()), kv);
      for (const auto& [head, uses] : kv_uses) EXPECT_EQ(uses, s->attention.cores_per_kv) << head;
      EXPECT_GE(s->ffn * cores, c.ffn);
      EXPECT_EQ(s->ffn % 32, 0);
      EXPECT_EQ(s->vocab * cores, c.vocab);
    }
  }
}

TEST(LlamaSharding, CoresMustDivideTheVocabulary) {
  LlamaConfig c = config(8, 4);
  c.vocab = 513;
  EXPECT_TRUE(shard_llama(c, 3));
  EXPECT_THAT(shard_llama(c, 2).error().message,
              testing::HasSubstr("vocabulary of 513 does not divide among 2 cores"));
  EXPECT_THAT(shard_llama(c, 0).error().message, testing::HasSubstr("0 cores"));
}

TEST(LlamaSharding, RopeLanesRepeatTheFrequenciesPerHead) {
  const LlamaConfig c = config(8, 4);
  const auto s = shard_llama(c, 2);
  const std::vector<float> lanes = rope_lanes(c, s->attention.shape), f = c.rope_frequencies();
  ASSERT_EQ(static_cast<int64_t>(lanes.size()), s->attention.shape.padded_half());
  for (size_t i = 0; i < lanes.size(); ++i)
    EXPECT_EQ(lanes[i], i < static_cast<size_t>(s->attention.shape.half()) ? f[i % 8] : 0.0f);
}

}  // namespace
}  // namespace gridless::models
