// run and bench with --engine tpu, as a user calls them, on programs that `compile` wrote; libtpu
// is the mock plugin, which computes what a kernel says on the CPU engine and fails on demand. The
// oracle is the golden model, and the CPU engine's answer.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "gridless/tpu/pjrt_abi.h"
#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"
#include "tests/tpu/plugins/mock_control.h"

namespace gridless::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kMock = GRIDLESS_TEST_PLUGINS "/mock_pjrt.so";
const std::string kTiny = std::string(GRIDLESS_TEST_DATA) + "/llama_tiny/untied";
const std::string kPrompt = "3,1,4,1,5,9,2,6,5,35,89,79,32,38,46,26,43,38,32,79,50";

class TpuCommand : public ::testing::Test {
 protected:
  std::string folder(const std::string& name) const { return (temporary_.path() / name).string(); }
  // Compiles the tiny model's step; returns its folder.
  std::string compile(const std::string& keys, const std::string& slice,
                      const Words& environment = {}) const {
    const std::string out = folder(keys + slice.substr(6));
    if (fs::exists(out)) return out;
    const Outcome result = run_command({"compile", kTiny + "?" + keys, "--slice", slice, "--libtpu",
                                        kMock, "--no-schedule", "-o", out},
                                       {.environment = environment});
    EXPECT_EQ(result.status, 0) << result.err;
    return out;
  }
  static Outcome run(const Words& programs, const Words& options = {},
                     const Words& environment = {}) {
    Words words = {"run",      kTiny, "--tokens",     kPrompt, "--engine", "tpu",
                   "--libtpu", kMock, "--max-tokens", "8",     "--json"};
    for (const std::string& program : programs) {
      words.emplace_back("--program");
      words.push_back(program);
    }
    words.insert(words.end(), options.begin(), options.end());
    return run_command(words, {.environment = environment});
  }
  static Json cpu_tokens(const std::string& cores, const Words& options = {}) {
    Words words = {"run", kTiny,          "--tokens", kPrompt, "--cores",
                   cores, "--max-tokens", "8",        "--json"};
    words.insert(words.end(), options.begin(), options.end());
    return Json::parse(run_command(words).out)["tokens"];
  }
  static void expect_fault(const Outcome& result, int status, const std::string& message) {
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  TemporaryFolder temporary_;
};

TEST_F(TpuCommand, SpeaksTheGoldenTokens) {
  std::ifstream file(kTiny + "/golden.json");
  const Json golden = Json::parse(file)["sequences"][0];
  std::string prompt;
  for (const Json& id : golden["prompt"]) prompt += (prompt.empty() ? "" : ",") + id.dump();
  const Outcome result =
      run_command({"run", kTiny, "--tokens", prompt, "--max-tokens", "48", "--engine", "tpu",
                   "--libtpu", kMock, "--program", compile("rows=1", "tpu7x:1x1x1"), "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out)["tokens"], golden["greedy"]);
}

TEST_F(TpuCommand, SpeaksAsTheCpuDoesOnEightCoresWithPrefillAndSampling) {
  const Words environment = {"MOCK_SLICE=2x2x1"};
  const Words programs = {compile("rows=1", "tpu7x:2x2x1"),
                          compile("rows=8&use=prefill", "tpu7x:2x2x1")};
  for (const Words& options :
       {Words{}, Words{"--steps-per-call", "3"}, Words{"--temperature", "1", "--seed", "5"}}) {
    const Outcome result = run(programs, options, environment);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(Json::parse(result.out)["tokens"], cpu_tokens("8", options));
  }
}

// State other than keys and values, in several operands.
TEST_F(TpuCommand, RunsModelsWithRecurrentState) {
  const std::string model = std::string(GRIDLESS_TEST_DATA) + "/qwen38_tiny/c_tp8";
  Words words = {"run", model, "--tokens", kPrompt, "--max-tokens", "8", "--json"};
  Words on_cpu = words;
  on_cpu.insert(on_cpu.end(), {"--cores", "8"});
  words.insert(words.end(), {"--engine", "tpu", "--libtpu", kMock});
  for (const char* keys : {"rows=1", "rows=8&use=prefill"}) {
    const std::string out = folder(keys);
    const Outcome compiled = run_command({"compile", model + "?" + keys, "--slice", "tpu7x:2x2x1",
                                          "--libtpu", kMock, "--no-schedule", "-o", out});
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    words.insert(words.end(), {"--program", out});
  }
  const Json expected = Json::parse(run_command(on_cpu).out)["tokens"];
  for (const char* steps : {"1", "4"}) {
    Words with = words;
    with.insert(with.end(), {"--steps-per-call", steps});
    const Outcome result = run_command(with, {.environment = {"MOCK_SLICE=2x2x1"}});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(Json::parse(result.out)["tokens"], expected) << steps << " steps per call";
  }
}

TEST_F(TpuCommand, BenchMeasuresIt) {
  const Outcome result =
      run_command({"bench", "decode", kTiny, "--engine", "tpu", "--libtpu", kMock, "--program",
                   compile("rows=1", "tpu7x:1x1x1"), "--context", "4", "--tokens", "3", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_GT(Json::parse(result.out)["tokens_per_second"]["median"], 0);
}

// Two processes, each with the devices of one host, meet in a folder; both know the whole answer.
TEST_F(TpuCommand, TwoHostsGiveTheSameAnswer) {
  const Words programs = {compile("rows=1", "tpu7x:1x2x1"),
                          compile("rows=8&use=prefill", "tpu7x:1x2x1")};
  for (const Words& options :
       {Words{"--temperature", "1", "--seed", "5"}, Words{"--steps-per-call", "3"}}) {
    const std::string exchange = folder("exchange" + options[0]);
    fs::create_directory(exchange);
    const auto host = [&](int number) {
      return std::async(std::launch::async, [&, number] {
        return run(programs, options,
                   {"MOCK_SLICE=1x2x1", "MOCK_HOSTS=2", fmt::format("MOCK_HOST={}", number),
                    "MOCK_EXCHANGE=" + exchange});
      });
    };
    auto first = host(0), second = host(1);
    const Json expected = cpu_tokens("4", options);
    for (const Outcome& result : {first.get(), second.get()}) {
      ASSERT_EQ(result.status, 0) << result.err;
      EXPECT_EQ(Json::parse(result.out)["tokens"], expected);
    }
  }
}

TEST_F(TpuCommand, EveryFailureOfThePluginIsSaidAndEndsWithTwo) {
  using tpu::abi::Slot;
  const Words program = {compile("rows=1", "tpu7x:1x1x1")};
  for (const Slot slot : {Slot::kClientCreate, Slot::kClientPlatformName, Slot::kClientDevices,
                          Slot::kExecutableDeserializeAndLoad, Slot::kClientBufferFromHostBuffer,
                          Slot::kLoadedExecutableExecute, Slot::kBufferToHostBuffer}) {
    for (const int code : {8, 13, 14}) {
      expect_fault(
          run(program, {}, {fmt::format("MOCK_INJECT={}:{}:0", static_cast<int>(slot), code)}), 2,
          "injected");
    }
  }
}

TEST_F(TpuCommand, ADeviceThatIsLostInALaterLaunchIsSaid) {
  const Words program = {compile("rows=1", "tpu7x:1x1x1")};
  expect_fault(run(program, {}, {fmt::format("MOCK_INJECT={}:14:150", kMockAsynchronous)}), 2,
               "a device was lost");
}

TEST_F(TpuCommand, WhatHangsIsGivenUp) {
  const Words program = {compile("rows=1", "tpu7x:1x1x1")};
  const Words limit = {"--time-limit", "0.2"};
  expect_fault(
      run(program, limit, {fmt::format("MOCK_INJECT={}:{}:150", kMockAsynchronous, kMockHang)}), 2,
      "is not over after 0.2 s: a device hangs");
  expect_fault(run(program, limit, {fmt::format("MOCK_INJECT=10:{}:0", kMockHang)}), 2,
               "starting the TPU client is not over after 0.2 s: another host");
}

TEST_F(TpuCommand, DevicesAndBuildsThatDoNotFitAreRefused) {
  const Words program = {compile("rows=1", "tpu7x:1x1x1")};
  expect_fault(run(program, {}, {"MOCK_PLATFORM=cpu"}), 2, "runs on platform 'cpu', not on tpu");
  expect_fault(run(program, {}, {"MOCK_SLICE=2x2x1"}), 2, "libtpu sees 8 cores, tpu7x:1x1x1 has 2");
  expect_fault(run(program, {}, {"MOCK_VERSION=mock 2"}), 1,
               "was compiled by 'mock 1', this is 'mock 2'");
  expect_fault(run(program, {}, {"MOCK_CORRUPT=1"}), 2, "gives back other bytes");
  expect_fault(run(program, {}, {"MOCK_HBM=100000"}), 2, "the device's memory is full");
  expect_fault(run(program, {}, {"MOCK_PJRT=major"}), 2, "speaks PJRT 3.116");
  expect_fault(run(program, {}, {"MOCK_PJRT=small_table"}), 2, "it is too old");
  expect_fault(run(program, {}, {"MOCK_PJRT=init_error"}), 2, "no such luck");
  expect_fault(run_command({"run", kTiny, "--tokens", "1", "--engine", "tpu", "--program",
                            program[0], "--libtpu", folder("none.so")}),
               1, "there is no libtpu.so");
}

TEST_F(TpuCommand, ProgramsThatAreNotThoseOfTheModelAreRefused) {
  const std::string program = compile("rows=1", "tpu7x:1x1x1");
  expect_fault(run({}), 1, "gridless compile '" + kTiny + "?rows=1'");
  expect_fault(run({folder("none")}), 1, "there is no manifest.json");
  expect_fault(run({program, program}), 1, "are both programs for 1 rows");
  expect_fault(run({program, compile("rows=2&use=prefill&context=100", "tpu7x:1x1x1")}), 1,
               "do not belong together");
  expect_fault(run({program}, {"--cores", "4"}), 1, "is for 2; leave the option out");
  expect_fault(run({program}, {"--format", "q8"}), 1, "compiled for another model, format");
  expect_fault(run({compile("rows=1&context=100", "tpu7x:1x1x1")}, {"--context", "600"}), 1,
               "hold 1 sequences of 128 tokens");
  expect_fault(run_command({"run", kTiny, "--tokens", "1", "--program", program}), 1, "--engine");
  // What was changed since it was compiled.
  const auto damaged = [&](const std::string& file, const std::string& text) {
    fs::remove_all(folder("damaged"));
    fs::copy(program, folder("damaged"));
    std::ofstream(folder("damaged") + "/" + file, std::ios::app) << text;
    return run({folder("damaged")});
  };
  expect_fault(damaged("executable.bin", "x"), 1, "executable.bin has");
  expect_fault(damaged("manifest.json", "x"), 1, "manifest.json");
}

}  // namespace
}  // namespace gridless::testing
