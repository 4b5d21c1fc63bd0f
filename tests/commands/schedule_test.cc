// From a finding of `check` to its timing under `exec`, and `check --exhaustive`, from the outside.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"

namespace gridless::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string corpus(const std::string& name) {
  return std::string(GRIDLESS_TEST_DATA) + "/corpus/" + name;
}

class Schedules : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }

  Outcome check(const std::string& kernel, std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {"check", corpus(kernel) + "/module.mlir", "--json",
                                     "--schedule-out", path("schedules.json")};
    args.insert(args.end(), more.begin(), more.end());
    return run_command(args);
  }
  Outcome exec(const std::string& kernel, std::vector<std::string> more) const {
    std::vector<std::string> args = {"exec",      corpus(kernel) + "/module.mlir",
                                     "--inputs",  corpus(kernel) + "/data.safetensors",
                                     "--outputs", path("out.safetensors")};
    args.insert(args.end(), more.begin(), more.end());
    return run_command(args);
  }
  void write(const std::string& text) const { std::ofstream(path("schedules.json")) << text; }

 private:
  TemporaryFolder folder_;
};

TEST_F(Schedules, ARaceIsShownByExecWithWhatDiffers) {
  ASSERT_EQ(check("q02_wrong_semaphore").status, 1);
  const Outcome shown =
      exec("q02_wrong_semaphore", {"--schedule", path("schedules.json"), "--json"});
  const json answer = json::parse(shown.out);
  EXPECT_EQ(answer["schedule"], "race");
  ASSERT_FALSE(answer["seen"].empty()) << shown.out;
  EXPECT_EQ(answer["seen"][0]["kind"], "race");
  EXPECT_FALSE(answer["differences"].empty()) << shown.out;
  EXPECT_TRUE(std::filesystem::exists(path("out.safetensors")));
}

TEST_F(Schedules, ADeadlockIsShownAsTheHangItIs) {
  ASSERT_EQ(check("q10_deadlock_two_devices").status, 1);
  const Outcome shown = exec("q10_deadlock_two_devices", {"--schedule", path("schedules.json")});
  EXPECT_EQ(shown.status, 1);
  EXPECT_THAT(shown.err, HasSubstr("deadlock"));
}

TEST_F(Schedules, TheExplorersTimingsRunToo) {
  const Outcome checked = check("q01_dropped_wait", {"--exhaustive"});
  EXPECT_EQ(checked.status, 1);
  const json explored = json::parse(checked.out)["exhaustive"];
  EXPECT_EQ(explored["exhausted"], true);
  EXPECT_EQ(explored["verdict"], "findings");
  const json file = json::parse(std::ifstream(path("schedules.json")));
  const size_t last = file["schedules"].size();
  EXPECT_FALSE(file["schedules"][last - 1]["steps"].empty());
  const Outcome shown = exec("q01_dropped_wait", {"--schedule", path("schedules.json"), "--finding",
                                                  std::to_string(last), "--json"});
  EXPECT_FALSE(json::parse(shown.out)["seen"].empty()) << shown.out << shown.err;
}

TEST_F(Schedules, AnExplorerThatMeetsItsLimitGivesNoVerdict) {
  const Outcome checked = check("p31_exchange_2dev", {"--exhaustive", "--max-states", "5"});
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(json::parse(checked.out)["exhaustive"]["verdict"], "none");
  EXPECT_THAT(checked.err, HasSubstr("not every timing was explored: stopped after 5 states"));
}

TEST_F(Schedules, BadFilesAreRefusedWithAReason) {
  const auto refused = [&](const std::string& text, std::vector<std::string> more = {}) {
    write(text);
    more.insert(more.end(), {"--schedule", path("schedules.json")});
    const Outcome result = exec("q01_dropped_wait", more);
    EXPECT_EQ(result.status, 1) << text;
    return result.err;
  };
  const std::string head = R"({"format": "gridless schedule", "version": 1, )";
  EXPECT_THAT(refused("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refused("{}"), HasSubstr("no schedule file"));
  EXPECT_THAT(refused(R"({"format": "gridless schedule", "version": 2})"),
              HasSubstr("version 2 of the schedule format"));
  EXPECT_THAT(refused(head + R"("cores": 1, "schedules": []})"), HasSubstr("holds no schedule"));
  EXPECT_THAT(refused(head + R"("cores": 3, "schedules": []})"), HasSubstr("for 3 cores"));
  const std::string held =
      R"("cores": 1, "schedules": [{"launches": 1, "hold": {"core": 0, "launch": 0, "event": 1},
         "until": {"core": 0, "launch": 0, "event": 1000}}]})";
  EXPECT_THAT(refused(head + held), HasSubstr("does not fit"));
  EXPECT_THAT(refused(head + held, {"--finding", "2"}), HasSubstr("--finding 2"));
  EXPECT_THAT(
      refused(head + R"("cores": 1, "schedules": [{"launches": 1, "steps": [{"core": 4}]}]})"),
      HasSubstr("schedule 1: 'core' is 4"));
}

TEST_F(Schedules, HostileTimingsOfACleanKernelChangeNothing) {
  const auto bytes = [&] {
    std::ifstream in(path("out.safetensors"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  ASSERT_EQ(exec("p31_exchange_2dev", {}).status, 0);
  const std::string plain = bytes();
  for (const char* seed : {"1", "2", "3"}) {
    const Outcome result = exec("p31_exchange_2dev", {"--adversarial", seed});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(bytes(), plain);
  }
  EXPECT_EQ(exec("p31_exchange_2dev", {"--adversarial", "1", "--engine", "cpu"}).status, 1);
}

}  // namespace
}  // namespace gridless::testing
