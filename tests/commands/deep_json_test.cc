// JSON that nests 100000 deep, in every file of a model and of a request: an error that names the
// file, where copying the tree would overflow the stack.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/commands/run_command.h"

namespace gridless::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DeepJson : public ::testing::Test {
 protected:
  DeepJson() : dir_(fs::path(::testing::TempDir()) / ("deep_json_" + std::to_string(::getpid()))) {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
    const fs::path model = fs::path(GRIDLESS_TEST_DATA) / "llama_tiny" / "untied";
    fs::copy_file(model / "config.json", dir_ / "config.json");
    fs::copy_file(model / "model.safetensors", dir_ / "model.safetensors");
  }
  ~DeepJson() override { fs::remove_all(dir_); }

  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  // {"key": [[[...]]]}, which is valid.
  void write(const std::string& name, const std::string& key) const {
    std::ofstream(path(name)) << "{\"" << key << "\": " << std::string(100000, '[')
                              << std::string(100000, ']') << "}";
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& name) const {
    const Outcome result = run_command(arguments);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr(name), HasSubstr("deeper than 512 levels")));
  }

  fs::path dir_;
};

TEST_F(DeepJson, InTheConfig) {
  write("config.json", "rope_scaling");
  expect_refused({"run", dir_, "--tokens", "1"}, path("config.json"));
  expect_refused({"inspect", dir_}, path("config.json"));
}

TEST_F(DeepJson, InTheGenerationConfig) {
  write("generation_config.json", "eos_token_id");
  expect_refused({"run", dir_, "--tokens", "1"}, path("generation_config.json"));
}

TEST_F(DeepJson, InTheTokenizer) {
  write("tokenizer.json", "model");
  expect_refused({"run", dir_, "--prompt", "a"}, path("tokenizer.json"));
  expect_refused({"inspect", dir_}, path("tokenizer.json"));
}

TEST_F(DeepJson, InTheTokenizerConfigAndTheMessages) {
  write("messages.json", "messages");
  std::ofstream(path("chat_template.jinja")) << "{{ messages[0].content }}";
  expect_refused({"render", dir_, "--messages", path("messages.json")}, path("messages.json"));
  write("tokenizer_config.json", "eos_token");
  expect_refused({"render", dir_, "--messages", path("messages.json")},
                 path("tokenizer_config.json"));
}

}  // namespace
}  // namespace gridless::testing
