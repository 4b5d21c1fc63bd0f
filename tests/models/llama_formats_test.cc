// The formats a checkpoint runs in when nobody asks for another.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "gridless/models/llama/weights.h"
#include "tests/weights/builders.h"

namespace gridless::models {
namespace {

using weights::Format;
using weights::testing::Bytes;

constexpr uint32_t kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ8_0 = 8;  // ggml's numbers

// One layer of 32 units; all matrices of type `matrices`, but ffn_down `down` and the embedding.
Formats formats_of(uint32_t matrices, uint32_t down, uint32_t embedding) {
  weights::testing::GgufBuilder b;
  b.text("general.architecture", "llama");
  b.u32("llama.block_count", 1).u32("llama.embedding_length", 32);
  b.u32("llama.attention.head_count", 2).u32("llama.attention.head_count_kv", 2);
  const auto add = [&](const char* name, uint32_t type) {
    const size_t block = type == kF16 ? 64 : type == kQ4_0 ? 18 : type == kQ4_1 ? 20 : 34;
    b.tensor(name, {32, 32}, type, Bytes(32 * block));
  };
  add("token_embd.weight", embedding);
  for (const char* name :
       {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight",
        "blk.0.attn_output.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"}) {
    add(name, matrices);
  }
  add("blk.0.ffn_down.weight", down);
  const std::string path = testing::TempDir() + "formats_" + std::to_string(matrices) + "_" +
                           std::to_string(down) + ".gguf";
  const Bytes bytes = b.build();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  const auto checkpoint = weights::Checkpoint::open(path);
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  LlamaConfig config;
  config.layers = 1;
  const auto formats = native_formats(*checkpoint, config);
  EXPECT_TRUE(formats) << formats.error().message;
  std::remove(path.c_str());
  return *formats;
}

TEST(NativeFormats, AreTheBlocksOfTheFile) {
  EXPECT_EQ(formats_of(kQ4_0, kQ4_0, kQ8_0).layers, Format::kQ4);
  EXPECT_EQ(formats_of(kQ4_1, kQ4_1, kQ8_0).layers, Format::kQ4m);
  EXPECT_EQ(formats_of(kQ8_0, kQ8_0, kQ4_0).layers, Format::kQ8);
  EXPECT_EQ(formats_of(kQ8_0, kQ8_0, kQ4_0).head, Format::kQ4);
  EXPECT_EQ(formats_of(kF16, kF16, kF16).layers, Format::kBf16);
}

// Quantising the eight-bit matrix a second time, to four bits, would lose what the file holds.
TEST(NativeFormats, OfAMixedFileIsBf16) {
  EXPECT_EQ(formats_of(kQ4_0, kQ8_0, kQ8_0).layers, Format::kBf16);
  EXPECT_EQ(formats_of(kQ8_0, kQ4_1, kQ8_0).layers, Format::kBf16);
  EXPECT_EQ(formats_of(kQ8_0, kQ4_1, kQ8_0).head, Format::kQ8);
}

// A checkpoint whose head (Q8_0) and embedding (Q4_0) differ tells which of the two is taken.
TEST(Head, IsTheOneTheConfigNames) {
  const auto head = [](bool output, bool tied) {
    weights::testing::GgufBuilder b;
    b.text("general.architecture", "llama");
    b.tensor("token_embd.weight", {32, 32}, kQ4_0, Bytes(32 * 18));
    if (output) b.tensor("output.weight", {32, 32}, kQ8_0, Bytes(32 * 34));
    b.tensor("blk.0.ffn_gate.weight", {32, 32}, kQ4_0, Bytes(32 * 18));
    const std::string path = testing::TempDir() + "head.gguf";
    const Bytes bytes = b.build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<int64_t>(bytes.size()));
    const auto checkpoint = weights::Checkpoint::open(path);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->config()["tie_word_embeddings"], !output);
    std::remove(path.c_str());
    LlamaConfig config;
    config.tied_head = tied;
    return native_formats(*checkpoint, config)->head;
  };
  EXPECT_EQ(head(/*output=*/true, /*tied=*/false), Format::kQ8);
  EXPECT_EQ(head(/*output=*/true, /*tied=*/true), Format::kQ4);  // an lm_head that nothing uses
  EXPECT_EQ(head(/*output=*/false, /*tied=*/true), Format::kQ4);
}

}  // namespace
}  // namespace gridless::models
