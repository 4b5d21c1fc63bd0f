// Tokenizer and chat template as they lie in checkpoints.
#include "gridless/text/text_model.h"

#include <cstdlib>
#include <filesystem>

#include "gridless/base/mapped_file.h"
#include "gridless/models/registry.h"
#include "tests/temporary_folder.h"
#include "tests/text/data.h"

namespace gridless::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;
using Json = nlohmann::ordered_json;

std::string data(const std::string& name) {
  return std::string(GRIDLESS_TEST_DATA) + "/text/" + name;
}

class TextModel : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file((directory_ / name).string(), text).has_value());
  }
  std::string rendered() {
    const auto model = load_chat_model(directory_.string());
    if (!model) return model.error().message;
    ChatInput input{Json::parse(R"([{"role": "user", "content": "q"}])")};
    input.variables = model->special_tokens;
    return render_chat(model->chat_template, input).value();
  }
  gridless::testing::TemporaryFolder folder_;
  const fs::path& directory_ = folder_.path();
};

TEST_F(TextModel, TokenizerFromDirectoryAndFromFile) {
  for (const char* path : {"bpe_qwen2", "bpe_qwen2/tokenizer.json"}) {
    const auto t = load_tokenizer(data(path));
    ASSERT_TRUE(t.has_value()) << t.error().message;
    EXPECT_EQ(t->encode("<|im_end|>").value(), (Ids{2050}));
    EXPECT_EQ(t->eos(), 2050);
  }
  for (const char* path : {"tiktoken", "tiktoken/tiktoken.model"}) {
    const auto t = load_tokenizer(data(path));
    ASSERT_TRUE(t.has_value()) << t.error().message;
    EXPECT_EQ(t->encode("<|end_of_msg|>").value(), (Ids{1758}));
    EXPECT_EQ(t->bos(), 1756);
  }
  EXPECT_NE(load_tokenizer(directory_.string()).error().message.find("has no tokenizer"),
            std::string::npos);
  EXPECT_FALSE(load_tokenizer((directory_ / "missing.json").string()).has_value());
}

TEST_F(TextModel, ChatTemplateFileWinsOverConfig) {
  EXPECT_NE(rendered().find("has no chat template"), std::string::npos);
  write("tokenizer_config.json", R"({"chat_template": "config {{ bos_token }}{{ eos_token }}",
                                     "bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(rendered(), "config <s></s>");
  write("chat_template.jinja", "file {{ messages[0].content }}{{ bos_token }}");
  EXPECT_EQ(rendered(), "file q<s>");
}

TEST_F(TextModel, OfSeveralTemplatesTheDefaultIsTaken) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(rendered(), "d");
}

TEST_F(TextModel, ErrorsNameTheFile) {
  write("chat_template.jinja", "{% if %}");
  EXPECT_EQ(rendered(), (directory_ / "chat_template.jinja").string() +
                            ": chat template line 1: expected an expression, found '%}'");
  write("tokenizer.json", "{");
  EXPECT_EQ(load_tokenizer(directory_.string()).error().message,
            (directory_ / "tokenizer.json").string() +
                ": tokenizer.json is not valid JSON: it ends too early, after 1 bytes");
}

// The real model, where it has been fetched: its own template and vocabulary from GGUF metadata.
TEST(SmolLm2, PromptsHaveTheIdsOfTransformers) {
  const char* given = std::getenv("GRIDLESS_SMOLLM2");
  const auto path = given != nullptr ? Result<fs::path>(given) : models::resolve_weights("smollm2");
  if (!path) GTEST_SKIP() << "SmolLM2 has not been fetched: " << path.error().message;
  const auto t = load_tokenizer(path->string());
  ASSERT_TRUE(t.has_value()) << t.error().message;
  const auto chat = load_chat_model(path->string());
  ASSERT_TRUE(chat.has_value()) << chat.error().message;
  EXPECT_EQ(chat->special_tokens["eos_token"], "<|im_end|>");
  int chats = 0, plain = 0;
  const Json all = read_json("smollm2_prompts.json");
  for (const auto& c : all["cases"]) {
    std::string text;
    if (c.contains("messages")) {
      text = render_chat(chat->chat_template, {c["messages"]}).value();
      ++chats;
    } else {
      text = c["prompt"].get<std::string>();
      ++plain;
    }
    EXPECT_EQ(t->encode(text).value(), c["prompt_ids"].get<Ids>()) << text;
    EXPECT_EQ(t->decode(c["greedy_ids"].get<Ids>(), true).value(), c["text"].get<std::string>());
  }
  EXPECT_GT(chats, 0);
  EXPECT_GT(plain, 0);
}

}  // namespace
}  // namespace gridless::text
