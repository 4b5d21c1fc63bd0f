#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/commands/run_command.h"

namespace gridless::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string data(const std::string& name) { return std::string(GRIDLESS_TEST_DATA) + "/" + name; }

TEST(InspectCommand, JsonCountsWhatACheckpointHolds) {
  const Outcome result = run_command({"inspect", data("llama_tiny/untied"), "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(result.out);
  EXPECT_EQ(all["container"], "safetensors");
  // Embedding and head, final norm; per layer two norms, q and o, k and v, and the three of the
  // MLP.
  constexpr int64_t kHidden = 64, kQuery = 8 * 16, kKeyValue = 4 * 16, kInner = 160;
  constexpr int64_t kLayer =
      2 * kHidden + 2 * kHidden * kQuery + 2 * kHidden * kKeyValue + 3 * kHidden * kInner;
  EXPECT_EQ(all["parameters"], 2 * 512 * kHidden + kHidden + 4 * kLayer);
  ASSERT_EQ(all["formats"].size(), 1u);
  EXPECT_EQ(all["formats"][0]["dtype"], "BF16");
  EXPECT_EQ(all["bytes"], all["parameters"].get<int64_t>() * 2);
  EXPECT_EQ(all["config"]["num_hidden_layers"], 4);
  EXPECT_TRUE(all["tokenizer"].is_null());
}

TEST(InspectCommand, StepSaysWhatItReads) {
  const Outcome result = run_command({"inspect", data("llama_tiny/untied"), "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json step = nlohmann::json::parse(result.out)["step"];
  for (const char* matrix : {"qkv", "o", "gate_up", "down", "head"})
    EXPECT_EQ(step["formats"][matrix], "bf16");
  EXPECT_EQ(step["kv_bytes_per_token"],
            4 * 2 * 4 * 16 * 2);  // layers, K and V, heads, width, bytes
  ASSERT_EQ(step["cores"].size(), 4u);
  // All matrices of the model without the embedding table, in bytes of bf16.
  constexpr double kModel = 2.0 * (512 * 64 + 4 * (64 * (2 * 128 + 2 * 64) + 3 * 64 * 160));
  for (const auto& c : step["cores"]) {
    EXPECT_GE(c["image_bytes"], c["used_bytes"]);
    EXPECT_NEAR(c["waste"].get<double>(), 1 - kModel / c["image_bytes"].get<double>(), 1e-9);
    EXPECT_EQ(c["chunk_bytes"].get<int64_t>() * c["chunks_per_core"].get<int64_t>() *
                  c["cores"].get<int64_t>(),
              c["image_bytes"].get<int64_t>());
    EXPECT_EQ(c["kv_bytes_per_token"], 4 * 2 * 128 * 2 * c["cores"].get<int>());  // padded lanes
  }
  const Outcome text = run_command({"inspect", data("llama_tiny/untied")});
  EXPECT_THAT(text.out, HasSubstr("keys and values of a token: 1024 bytes"));
}

TEST(InspectCommand, AModelThatNoStepRunsSaysWhy) {
  const Outcome result = run_command({"inspect", data("gguf/written.gguf"), "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json step = nlohmann::json::parse(result.out)["step"];
  ASSERT_TRUE(step.contains("error")) << step;
  EXPECT_NE(step["error"], "");
  const Outcome text = run_command({"inspect", data("gguf/written.gguf")});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("cannot run: " + step["error"].get<std::string>()));
}

TEST(InspectCommand, TablesShowFormatsAndKinds) {
  const Outcome result = run_command({"inspect", data("gguf/written.gguf")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("gguf, 4 tensors"), HasSubstr("Q8_0"), HasSubstr("q8"),
                    HasSubstr("model.layers.*.mlp.up_proj.weight"), HasSubstr("LlamaForCausalLM")));
}

TEST(InspectCommand, EveryTensorOnRequest) {
  const Outcome result = run_command({"inspect", data("llama_tiny/untied"), "--tensors"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("model.layers.3.mlp.up_proj.weight"));
}

TEST(InspectCommand, BadFilesAreTheUsersFault) {
  const Outcome missing = run_command({"inspect", "no_such_model"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("no_such_model"));
  const Outcome wrong = run_command({"inspect", data("llama_tiny/untied/config.json")});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("not a checkpoint"));
}

// Counted in the text of the module: four arguments, two copies, one semaphore.
TEST(InspectCommand, AKernelInAnyForm) {
  for (const char* form : {"module.mlir", "module.mlirbc", "jax.stablehlo.mlir"}) {
    const Outcome result =
        run_command({"inspect", data(std::string("corpus/p01_dma_add_one/") + form), "--json"});
    ASSERT_EQ(result.status, 0) << form << result.err;
    const nlohmann::json all = nlohmann::json::parse(result.out);
    EXPECT_EQ(all["kernel"], "add_one");
    EXPECT_EQ(all["arguments"].size(), 4u);
    EXPECT_EQ(all["copies"], 2);
    EXPECT_EQ(all["semaphores"], 1);
    EXPECT_EQ(all["vmem_bytes"], 8 * 128 * 4);
    EXPECT_EQ(all["ops"]["tpu.wait_dma"], 2);
    EXPECT_EQ(all["call"]["operands"].size(), 1u);
    EXPECT_EQ(all["valid"], true);
  }
  const Outcome words =
      run_command({"inspect", data("corpus/p31_exchange_2dev/jax.stablehlo.mlir")});
  EXPECT_THAT(words.out, AllOf(HasSubstr("kernel exchange"), HasSubstr("called on 2 cores"),
                               HasSubstr("collective_id 0")));
  EXPECT_EQ(run_command({"inspect", data("bytecode/version6.mlirbc")}).status, 1);
}

}  // namespace
}  // namespace gridless::testing
