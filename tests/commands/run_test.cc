// run, chat and bench as a user calls them, on a small model and, where fetched, on SmolLM2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gridless/models/registry.h"
#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"

namespace gridless::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

const std::string kTiny = std::string(GRIDLESS_TEST_DATA) + "/llama_tiny/untied";

Json golden() {
  std::ifstream file(kTiny + "/golden.json");
  return Json::parse(file)["sequences"][0];
}

std::string list(const Json& ids) {
  std::string out;
  for (const Json& id : ids) out += (out.empty() ? "" : ",") + id.dump();
  return out;
}

// Error cases: status 1, nothing on stdout, one message.
void expect_error(const std::vector<std::string>& arguments, const std::string& message) {
  const Outcome result = run_command(arguments);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr(message));
}

TEST(RunCommand, JsonHoldsTheGoldenTokensAndTheFigures) {
  const Json g = golden();
  for (const char* engine : {"cpu", "emulate"}) {
    const size_t count = std::string(engine) == "cpu" ? 48 : 6;
    const Outcome result =
        run_command({"run", kTiny, "--tokens", list(g["prompt"]), "--max-tokens",
                     std::to_string(count), "--engine", engine, "--cores", "2", "--json"});
    ASSERT_EQ(result.status, 0) << result.err;
    const Json object = Json::parse(result.out);
    const std::vector<int> greedy = g["greedy"];
    EXPECT_EQ(
        object["tokens"],
        std::vector<int>(greedy.begin(), greedy.begin() + static_cast<std::ptrdiff_t>(count)));
    EXPECT_EQ(object["prompt_tokens"], g["prompt"].size());
    EXPECT_EQ(object["finish_reason"], "length");
    EXPECT_EQ(object["text"], "");
    EXPECT_TRUE(object["draft"].is_null());
    for (const char* key : {"ttft_ms", "tpot_ms", "tokens_per_second", "bytes_per_step"})
      EXPECT_GT(object[key].get<double>(), 0) << key;
  }
}

TEST(RunCommand, IdsGoToStdoutAndStatisticsToStderr) {
  const Json g = golden();
  const Outcome result =
      run_command({"run", kTiny, "--tokens", list(g["prompt"]), "--max-tokens", "3"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out,
            list(Json(std::vector<int>(g["greedy"].begin(), g["greedy"].begin() + 3))) + "\n");
  for (const char* part : {"TTFT", "TPOT", "read per step", "GB/s that this machine reads"})
    EXPECT_THAT(result.err, HasSubstr(part));
}

TEST(RunCommand, MistakesSayWhatToDo) {
  expect_error({"run", "no_such_model", "--prompt", "x"}, "no model or file 'no_such_model'");
  expect_error({"run", "llama_8b", "--prompt", "x"}, "llama_8b");
  expect_error({"run", kTiny}, "give one of --prompt, --prompt-file and --tokens");
  expect_error({"run", kTiny, "--prompt", "x", "--tokens", "1"}, "give one of --prompt");
  expect_error({"run", kTiny, "--prompt", "x"}, "there is no tokenizer");
  expect_error({"run", kTiny, "--tokens", "1,two"}, "'two' is not a token id");
  expect_error({"run", kTiny, "--tokens", "1,700"}, "token 700");
  expect_error({"run", kTiny, "--tokens", ""}, "the prompt is empty");
  expect_error(
      {"run", kTiny, "--tokens", "1,2,3", "--context", "2"},
      "the prompt has 3 tokens, more than the context of 2: shorten it, or give --context");
  expect_error({"run", kTiny, "--tokens", "1", "--context", "9999"}, "at most 2048 tokens");
  expect_error({"run", kTiny, "--tokens", "1", "--engine", "tpu"},
               "runs programs that were compiled for the slice");
  expect_error({"run", kTiny, "--tokens", "1", "--engine", "gpu"}, "give cpu, emulate or tpu");
  expect_error({"run", kTiny, "--tokens", "1", "--draft", "dflash2"},
               "--draft 'dflash2': give ngram, or the checkpoint directory");
  expect_error({"run", kTiny, "--tokens", "1", "--draft", kTiny}, "no 'dflash_config'");
  expect_error({"run", kTiny, "--tokens", "1", "--draft-tokens", "3"}, "--draft");
  expect_error({"run", kTiny, "--tokens", "1", "--draft", "ngram", "--draft-tokens", "64"},
               "--draft-tokens");
  expect_error({"run", kTiny, "--tokens", "1", "--format", "q5"}, "give bf16, q8 or q4");
  expect_error({"run", kTiny, "--tokens", "1", "--cores", "3"},
               "512 does not divide among 3 cores");
  expect_error({"run", kTiny, "--tokens", "1", "--temperature", "-1"}, "temperature -1");
  expect_error({"run", kTiny, "--tokens", "1", "--chat"}, "--chat renders a text");
  expect_error({"run", kTiny, "--tokens", "1", "--max-tokns", "3"}, "Did you mean '--max-tokens'?");
  expect_error({"chat", kTiny}, "there is no tokenizer");
}

TEST(RunCommand, IdsNeedNoTokenizerThatCanBeRead) {
  const TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  for (const char* name : {"model.safetensors", "config.json"})
    fs::copy_file(kTiny + "/" + name, folder / name);
  std::ofstream(folder / "tokenizer.json") << R"({"model": {"type": "Unigram"}})";
  const Outcome result =
      run_command({"run", folder.string(), "--tokens", "1,2", "--max-tokens", "3", "--json"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["text"], "");
  EXPECT_EQ(Json::parse(result.out)["tokens"].size(), 3u);
  expect_error({"run", folder.string(), "--prompt", "x"},
               "/tokenizer.json: the pre_tokenizer has no ByteLevel step");
}

TEST(RunCommand, OtherArchitecturesAreNamed) {
  const TemporaryFolder temporary;
  const fs::path& folder = temporary.path();
  fs::copy_file(kTiny + "/model.safetensors", folder / "model.safetensors");
  std::ifstream file(kTiny + "/config.json");
  Json config = Json::parse(file);
  config["model_type"] = "mamba";
  std::ofstream(folder / "config.json") << config;
  expect_error({"run", folder.string(), "--tokens", "1"}, "architecture 'mamba' is not supported");
}

TEST(RunCommand, QuantisedFormatsRunToo) {
  for (const char* format : {"bf16", "q8", "q4"}) {
    const Outcome result = run_command(
        {"run", kTiny, "--tokens", "1,2,3", "--max-tokens", "4", "--format", format, "--json"});
    ASSERT_EQ(result.status, 0) << format << result.err;
    EXPECT_EQ(Json::parse(result.out)["tokens"].size(), 4u);
  }
}

TEST(BenchCommand, SyntheticModelGivesEveryFigure) {
  for (const char* what : {"decode", "prefill"}) {
    std::vector<std::string> arguments = {"bench",    what,        "synthetic:2x64x128x4x2x256",
                                          "--format", "q8",        "--context",
                                          "20",       "--threads", "1",
                                          "--json"};
    if (std::string(what) == "decode")
      arguments.insert(arguments.end(), {"--rows", "3", "--tokens", "8"});
    const Outcome result = run_command(arguments);
    ASSERT_EQ(result.status, 0) << result.err;
    const Json object = Json::parse(result.out);
    EXPECT_EQ(object["model"], "synthetic:2x64x128x4x2x256");
    EXPECT_EQ(object["format"], "q8");
    EXPECT_EQ(object["threads"], 1);
    EXPECT_EQ(object["context"], 20);
    const Json& rate = object["tokens_per_second"];
    EXPECT_LE(rate["min"], rate["median"]);
    EXPECT_LE(rate["median"], rate["max"]);
    for (const char* key :
         {"bytes_per_step", "gb_per_s", "read_bandwidth_gb_per_s", "fraction", "cpu_ms_per_token"})
      EXPECT_GT(object[key].get<double>(), 0) << key;
  }
}

TEST(RunCommand, DraftsAreCountedAndChangeNothing) {
  // A prompt that repeats itself; sampled as well as greedy.
  const std::string prompt = "5,9,200,7,5,9,200,7,5,9,200,7,5,9";
  for (const char* temperature : {"0", "0.7"}) {
    std::vector<std::string> arguments{"run",          kTiny, "--tokens",      prompt,
                                       "--max-tokens", "60",  "--temperature", temperature,
                                       "--seed",       "3",   "--ignore-eos",  "--json"};
    const Outcome plain = run_command(arguments);
    arguments.insert(arguments.end(), {"--draft", "ngram", "--draft-tokens", "7"});
    const Outcome drafted = run_command(arguments);
    ASSERT_EQ(plain.status, 0) << plain.err;
    ASSERT_EQ(drafted.status, 0) << drafted.err;
    const Json object = Json::parse(drafted.out), d = object["draft"];
    EXPECT_EQ(object["tokens"], Json::parse(plain.out)["tokens"]);
    EXPECT_LE(d["accepted"], d["proposed"]);
    EXPECT_LE(d["rounds"], d["launches"]);
    // Every launch after the first token yields one token beside the drafts accepted.
    EXPECT_EQ(d["launches"].get<int>() + d["accepted"].get<int>(), 59);
    if (d["rounds"] > 0) {
      EXPECT_NEAR(d["mean_accepted"].get<double>(),
                  d["accepted"].get<double>() / d["rounds"].get<double>(), 1e-9);
    }
  }
  const Outcome text = run_command({"run", kTiny, "--tokens", prompt, "--draft", "ngram"});
  EXPECT_THAT(text.err, HasSubstr("draft ngram: "));
}

TEST(BenchCommand, DraftComparesOneAnswer) {
  const Outcome result =
      run_command({"bench", "draft", kTiny, "--tokens", "5,9,200,7,5,9,200,7,5", "--max-tokens",
                   "40", "--repeats", "2", "--ignore-eos", "--draft-tokens", "3", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json object = Json::parse(result.out);
  EXPECT_EQ(object["prompt_tokens"], 9);
  EXPECT_EQ(object["tokens"], 40);
  for (const char* key :
       {"plain_tokens_per_second", "draft_tokens_per_second", "speedup", "speedup_by_cpu_time"}) {
    EXPECT_GT(object[key]["min"], 0) << key;
    EXPECT_LE(object[key]["min"], object[key]["median"]) << key;
    EXPECT_LE(object[key]["median"], object[key]["max"]) << key;
  }
  EXPECT_EQ(object["draft"]["launches"].get<int>() + object["draft"]["accepted"].get<int>(), 39);
  expect_error({"bench", "draft", kTiny, "--tokens", "1", "--max-tokens", "1"},
               "nothing to measure");
  expect_error({"bench", "draft", kTiny}, "give one of --prompt");
}

TEST(BenchCommand, MistakesSayWhatToDo) {
  expect_error({"bench", "decode", "synthetic:2x64"}, "write synthetic:LAYERSxHIDDEN");
  expect_error({"bench", "decode", "synthetic:2x64x128x3x2x256"}, "write synthetic:LAYERSxHIDDEN");
  expect_error({"bench", "decode", kTiny, "--rowz", "2"},
               "gridless bench decode: unknown option '--rowz'. Did you mean '--rows'?");
  expect_error({"bench", "decode", kTiny, "--context", "5000"},
               "--context 5000 and 67 steps after it: the model was trained for at most 2048");
}

class SmolLm2Command : public ::testing::Test {
  void SetUp() override {
    if (!models::find_weights(*models::find_model("smollm2")))
      GTEST_SKIP() << "the weights of smollm2 are not here: ./dev demo fetches them";
  }
};

TEST_F(SmolLm2Command, AnswersAPromptAndStopsByItself) {
  const Outcome result = run_command(
      {"run", "smollm2", "--chat", "--prompt", "What is the capital of France?", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json object = Json::parse(result.out);
  EXPECT_EQ(object["text"], "The capital of France is Paris.");
  EXPECT_EQ(object["finish_reason"], "stop");
  EXPECT_EQ(object["prompt_tokens"], 37);
  const Outcome cut = run_command({"run", "smollm2", "--chat", "--prompt",
                                   "What is the capital of France?", "--stop", " of Fr"});
  EXPECT_EQ(cut.out, "The capital\n");
}

TEST_F(SmolLm2Command, ChatTakesAConversationFromAPipe) {
  for (const std::vector<std::string>& draft : {{}, std::vector<std::string>{"--draft", "ngram"}}) {
    std::vector<std::string> arguments{"chat", "smollm2", "--max-tokens", "16"};
    arguments.insert(arguments.end(), draft.begin(), draft.end());
    const Outcome result =
        run_command(arguments, {.input = "What is the capital of France?\n/reset\n"
                                         "What is the capital of France?\n/exit\nnot read\n"});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, "The capital of France is Paris.\nThe capital of France is Paris.\n");
  }
}

TEST(RunCommand, DraftModelsVerifyTheirGuesses) {
  const std::string set = std::string(GRIDLESS_TEST_DATA) + "/dflash2_tiny/a";
  std::ifstream file(set + "/golden.json");
  const Json trace = Json::parse(file)["sequences"][0];
  std::vector<std::string> arguments = {
      "run", set + "/target", "--tokens", list(trace["prompt"]), "--max-tokens",
      "40",  "--ignore-eos",  "--json"};
  const Outcome plain = run_command(arguments);
  arguments.insert(arguments.end(), {"--draft", set + "/draft"});
  const Outcome drafted = run_command(arguments);
  ASSERT_EQ(plain.status, 0) << plain.err;
  ASSERT_EQ(drafted.status, 0) << drafted.err;
  const Json object = Json::parse(drafted.out);
  EXPECT_EQ(object["tokens"], Json::parse(plain.out)["tokens"]);
  EXPECT_GT(object["draft"]["accepted"].get<int>(), 0);
  expect_error({"run", set + "/draft", "--tokens", "1"}, "give it as --draft");
  expect_error({"run", kTiny, "--tokens", "1", "--draft", set + "/draft"},
               "the Llama step has no taps");
}

TEST(BenchCommand, MeasuresADraftModel) {
  const std::string set = std::string(GRIDLESS_TEST_DATA) + "/dflash2_tiny/a";
  const Outcome result =
      run_command({"bench", "draft", set + "/target", "--tokens", "5,9,200", "--max-tokens", "12",
                   "--repeats", "2", "--ignore-eos", "--draft", set + "/draft", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json draft = Json::parse(result.out)["draft"];
  EXPECT_EQ(draft["launches"].get<int>() + draft["accepted"].get<int>(), 11);
}

}  // namespace
}  // namespace gridless::testing
