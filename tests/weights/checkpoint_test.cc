#include "gridless/weights/checkpoint.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "gridless/weights/dequantise.h"
#include "gridless/weights/gguf_names.h"
#include "gridless/weights/safetensors.h"
#include "tests/weights/builders.h"

namespace gridless::weights {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Bytes;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;

std::string data(const std::string& name) { return std::string(GRIDLESS_TEST_DATA) + "/" + name; }

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest()
      : dir_(fs::path(::testing::TempDir()) / fmt::format("checkpoint_{}", ::getpid())) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~CheckpointTest() override { fs::remove_all(dir_); }
  std::string path(const std::string& name = "") const { return (dir_ / name).string(); }
  void write(const std::string& name, const Bytes& bytes) {
    const ByteView part = bytes;
    ASSERT_TRUE(write_file(path(name), {&part, 1}));
  }
  void write_text(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(path(name), text));
  }
  std::string error_of(const std::string& p) const {
    const auto opened = Checkpoint::open(p);
    return opened ? "(no error)" : opened.error().message;
  }
  fs::path dir_;
};

TEST_F(CheckpointTest, ASingleFileModelOpensWithItsConfig) {
  const auto model = Checkpoint::open(data("llama_tiny/untied"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->config()["hidden_size"], 64);
  EXPECT_EQ(model->gguf(), nullptr);
  const auto q = model->require("model.layers.3.self_attn.q_proj.weight");
  ASSERT_TRUE(q);
  EXPECT_THAT((*q)->shape, ElementsAre(128, 64));
  EXPECT_EQ((*q)->dtype, Dtype::kBF16);
  EXPECT_EQ((*q)->rotary_heads, 0);
  const auto missing = model->require("model.layers.4.mlp.up_proj.weight");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("model.layers.4.mlp.up_proj.weight"));
}

TEST_F(CheckpointTest, AShardedModelHoldsTheTensorsOfAllShards) {
  const auto model = Checkpoint::open(data("llama_tiny/tied_llama3rope"));
  ASSERT_TRUE(model) << model.error().message;
  const auto text = read_text_file(data("llama_tiny/tied_llama3rope/model.safetensors.index.json"));
  ASSERT_TRUE(text);
  const auto map = parse_safetensors_index(*text);
  ASSERT_TRUE(map);
  EXPECT_EQ(model->tensors().size(), map->size());
  for (const auto& [name, shard] : *map) EXPECT_NE(model->find(name), nullptr) << name;
  EXPECT_EQ(model->find("lm_head.weight"), nullptr);  // tied
}

TEST_F(CheckpointTest, GgufNamesBecomeHuggingFaceNames) {
  write("m.gguf", testing::small_gguf());
  for (const std::string& p : {path("m.gguf"), path()}) {
    const auto model = Checkpoint::open(p);
    ASSERT_TRUE(model) << model.error().message;
    ASSERT_NE(model->gguf(), nullptr);
    EXPECT_NE(model->find("model.embed_tokens.weight"), nullptr);
    EXPECT_NE(model->find("model.layers.0.self_attn.q_proj.weight"), nullptr);
    EXPECT_EQ(model->find("model.layers.0.self_attn.q_proj.weight")->rotary_heads, 2);
    EXPECT_EQ(model->find("model.layers.0.self_attn.k_proj.weight")->rotary_heads, 1);
    EXPECT_NE(model->find("q4k"), nullptr);
    const nlohmann::json& config = model->config();
    EXPECT_EQ(config["architectures"][0], "LlamaForCausalLM");
    EXPECT_EQ(config["hidden_size"], 32);
    EXPECT_EQ(config["num_key_value_heads"], 1);
    EXPECT_EQ(config["head_dim"], 16);
    EXPECT_EQ(config["vocab_size"], 3);
    EXPECT_EQ(config["tie_word_embeddings"], true);
    EXPECT_TRUE(config["rope_scaling"].is_null());
    EXPECT_TRUE(fs::equivalent(model->directory(), path()));
  }
}

TEST(GgufNames, TheWholeTable) {
  EXPECT_EQ(hugging_face_name("token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(hugging_face_name("output_norm.weight"), "model.norm.weight");
  EXPECT_EQ(hugging_face_name("output.weight"), "lm_head.weight");
  EXPECT_EQ(hugging_face_name("blk.12.attn_norm.weight"), "model.layers.12.input_layernorm.weight");
  EXPECT_EQ(hugging_face_name("blk.0.attn_q.bias"), "model.layers.0.self_attn.q_proj.bias");
  EXPECT_EQ(hugging_face_name("blk.0.attn_k.weight"), "model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(hugging_face_name("blk.0.attn_v.weight"), "model.layers.0.self_attn.v_proj.weight");
  EXPECT_EQ(hugging_face_name("blk.0.attn_output.weight"),
            "model.layers.0.self_attn.o_proj.weight");
  EXPECT_EQ(hugging_face_name("blk.0.attn_q_norm.weight"),
            "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(hugging_face_name("blk.0.ffn_norm.weight"),
            "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(hugging_face_name("blk.0.ffn_gate.weight"), "model.layers.0.mlp.gate_proj.weight");
  EXPECT_EQ(hugging_face_name("blk.0.ffn_up.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(hugging_face_name("blk.0.ffn_down.weight"), "model.layers.0.mlp.down_proj.weight");
  for (const char* other : {"rope_freqs.weight", "blk.x.attn_q.weight", "blk..attn_q.weight",
                            "blk.0", "blk.1", "weight", "", ".", "blk.0.unknown.weight"})
    EXPECT_EQ(hugging_face_name(other), other);
}

TEST(RotaryRows, UndoTheConvertersPermutation) {
  // The converter: weights.reshape(heads, 2, width / 2, in).swapaxes(1, 2).reshape(weights.shape),
  // that is, stored[h][j][p] = original[h][p][j].
  constexpr int64_t kHeads = 3, kWidth = 8, kRows = kHeads * kWidth;
  std::vector<int64_t> stored;  // stored[s] = the original row at stored place s
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t j = 0; j < kWidth / 2; ++j)
      for (int64_t p = 0; p < 2; ++p) stored.push_back(h * kWidth + p * kWidth / 2 + j);
  for (int64_t r = 0; r < kRows; ++r)
    EXPECT_EQ(stored[static_cast<size_t>(stored_row(r, kRows, kHeads))], r);
  for (int64_t r = 0; r < kRows; ++r) EXPECT_EQ(stored_row(r, kRows, 0), r);
}

TEST_F(CheckpointTest, PermutedRowsAreReadInHuggingFaceOrder) {
  // q_proj of 2 heads of width 4 over an input of 1, value = the original row; stored as converted.
  Bytes q;
  for (const float x : {0, 2, 1, 3, 4, 6, 5, 7}) testing::append(q, x);
  const auto model_of = [&](const char* architecture) {
    GgufBuilder b;
    b.text("general.architecture", architecture);
    b.u32(std::string(architecture) + ".attention.head_count", 2);
    b.tensor("blk.0.attn_q.weight", {1, 8}, 0, q);
    return b.build();
  };
  const auto rows_of = [&](const char* architecture) {
    write("m.gguf", model_of(architecture));
    const auto model = Checkpoint::open(path("m.gguf"));
    std::vector<float> out(8);
    const TensorView* t = model->find("model.layers.0.self_attn.q_proj.weight");
    for (int64_t r = 0; r < 8; ++r)
      EXPECT_TRUE(dequantise_row(*t, r, &out[static_cast<size_t>(r)]));
    return out;
  };
  EXPECT_THAT(rows_of("llama"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(rows_of("qwen3"), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST_F(CheckpointTest, HeadsThatDoNotFitAreAnErrorNamingTheTensor) {
  for (const uint32_t heads : {0u, 3u, 8u, 0xffffffffu}) {
    GgufBuilder b;
    b.text("general.architecture", "llama").u32("llama.attention.head_count", heads);
    b.tensor("blk.0.attn_q.weight", {1, 8}, 0, Bytes(32));
    write("m.gguf", b.build());
    EXPECT_THAT(error_of(path("m.gguf")), AllOf(HasSubstr("m.gguf"), HasSubstr("q_proj"))) << heads;
  }
}

TEST_F(CheckpointTest, FrequencyFactorsAndPerLayerSettingsReachTheConfig) {
  GgufBuilder b;
  b.text("general.architecture", "llama").u32("llama.attention.head_count", 2);
  b.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).f32("llama.rope.freq_base", 5e5f);
  Bytes per_layer;
  testing::append<uint32_t>(per_layer, 4);
  testing::append<uint64_t>(per_layer, 2);
  testing::append<uint32_t>(per_layer, 7);
  testing::append<uint32_t>(per_layer, 7);
  b.raw("llama.attention.head_count_kv", 9, per_layer);
  Bytes factors;
  for (const float x : {1.0f, 8.0f}) testing::append(factors, x);
  b.tensor("rope_freqs.weight", {2}, 0, factors).tensor("output.weight", {1, 1}, 0, Bytes(4));
  write("m.gguf", b.build());
  const auto model = Checkpoint::open(path("m.gguf"));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->config()["num_key_value_heads"], 7);
  EXPECT_EQ(model->config()["rms_norm_eps"], 1e-5);  // the double, as config.json has it
  EXPECT_EQ(model->config()["rope_theta"], 5e5);
  EXPECT_EQ(model->config()["rope_scaling"]["rope_type"], "factors");
  EXPECT_EQ(model->config()["rope_scaling"]["factors"], nlohmann::json({1.0, 8.0}));
  EXPECT_EQ(model->config()["tie_word_embeddings"], false);
}

TEST_F(CheckpointTest, PathsThatAreNoCheckpoint) {
  EXPECT_THAT(error_of(path("missing")), HasSubstr("no such file"));
  EXPECT_THAT(error_of(path("missing.gguf")), HasSubstr("cannot open"));
  EXPECT_THAT(error_of(path()), HasSubstr("no checkpoint here"));
  write_text("notes.txt", "x");
  EXPECT_THAT(error_of(path("notes.txt")), HasSubstr("not a checkpoint"));
  write("a.gguf", testing::small_gguf());
  write("b.gguf", testing::small_gguf());
  EXPECT_THAT(error_of(path()), HasSubstr("2 .gguf files"));
  write("a.safetensors", testing::small_safetensors());
  write_text("config.json", "[]");
  EXPECT_THAT(error_of(path()), AllOf(HasSubstr("config.json"), HasSubstr("not a JSON object")));
  write("b.safetensors", testing::small_safetensors());
  EXPECT_THAT(error_of(path()), HasSubstr("index"));
}

TEST_F(CheckpointTest, IndexErrorsNameShardAndTensor) {
  write("one.safetensors", testing::small_safetensors());
  const char* kIndex = "model.safetensors.index.json";
  write_text(kIndex, R"({"weight_map":{"a":"two.safetensors"}})");
  EXPECT_THAT(error_of(path()), AllOf(HasSubstr("two.safetensors"), HasSubstr("not there")));
  write_text(kIndex, R"({"weight_map":{"a":"one.safetensors","zz":"one.safetensors"}})");
  EXPECT_THAT(error_of(path()), AllOf(HasSubstr("'zz'"), HasSubstr("one.safetensors")));
  write_text(kIndex, "{");
  EXPECT_THAT(error_of(path()), HasSubstr(kIndex));
  write_text(kIndex, R"({"weight_map":{"a":"one.safetensors"}})");
  const auto model = Checkpoint::open(path());
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->tensors().size(), 1u);  // what the index does not name is not the checkpoint's
  EXPECT_TRUE(model->config().empty());
}

}  // namespace
}  // namespace gridless::weights
