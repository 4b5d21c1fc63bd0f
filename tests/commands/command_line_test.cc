// What every subcommand owes its user: help with examples, and a sentence for every mistake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gridless/base/cpu_features.h"
#include "tests/commands/run_command.h"

namespace gridless::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(CommandLine, VersionNamesTheInstructionSet) {
  const Outcome result = run_command({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, ContainsRegex("^gridless [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(result.out, HasSubstr("isa " + std::string(isa_name(active_isa())) + "\n"));
  EXPECT_THAT(result.out, HasSubstr("\nlibtpu "));
}

TEST(CommandLine, VersionNamesTheTpuCompilerThatTheEnvironmentAsksFor) {
  const std::string none = "GRIDLESS_LIBTPU=" GRIDLESS_TEST_DATA;
  const Outcome result = run_command({"--version"}, {.environment = {none}});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("libtpu not found\n"));
}

TEST(CommandLine, IsaCanBeLoweredByTheEnvironment) {
  const Outcome result = run_command({"--version"}, {.environment = {"GRIDLESS_ISA=baseline"}});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("isa baseline\n"));
}

TEST(CommandLine, UnknownIsaIsRefusedBeforeAnythingRuns) {
  const Outcome result = run_command({"models"}, {.environment = {"GRIDLESS_ISA=mmx"}});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("GRIDLESS_ISA: unknown instruction set 'mmx'; use one of"));
}

TEST(CommandLine, NoCommandPrintsHelpAndFails) {
  const Outcome result = run_command({});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("Subcommands:"));
}

TEST(CommandLine, EverySubcommandHasHelpWithTwoExamples) {
  const std::vector<std::string> names = subcommands();
  ASSERT_THAT(names, ::testing::Contains("models"));
  for (const std::string& name : names) {
    const Outcome result = run_command({name, "--help"});
    EXPECT_EQ(result.status, 0) << name;
    const std::size_t examples = result.out.find("Examples:");
    ASSERT_NE(examples, std::string::npos) << name;
    EXPECT_GE(count(result.out.substr(examples), "gridless " + name), 2) << result.out;
  }
}

TEST(CommandLine, UnknownOptionOfEverySubcommandIsNamed) {
  for (const std::string& name : subcommands()) {
    const Outcome result = run_command({name, "--no-such-option"});
    EXPECT_EQ(result.status, 1) << name;
    EXPECT_THAT(result.out, IsEmpty()) << name;
    EXPECT_THAT(result.err, StartsWith("gridless " + name + ": unknown option '--no-such-option'"));
    EXPECT_THAT(result.err, HasSubstr("See 'gridless " + name + " --help'"));
  }
}

TEST(CommandLine, MisspeltOptionSuggestsTheNearest) {
  const Outcome result = run_command({"models", "--jsno"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("Did you mean '--json'?"));
}

TEST(CommandLine, MisspeltCommandSuggestsTheNearest) {
  const Outcome result = run_command({"modles"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "gridless: unknown command 'modles'. Did you mean 'models'? See 'gridless --help'.\n");
}

TEST(CommandLine, CommandLikeNoOtherGetsNoSuggestion) {
  const Outcome result = run_command({"xyzzyplugh"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "gridless: unknown command 'xyzzyplugh'. See 'gridless --help'.\n");
}

TEST(CommandLine, UnknownOptionBeforeTheCommandIsNamed) {
  const Outcome result = run_command({"--verbose", "models"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, StartsWith("gridless"));
  EXPECT_THAT(result.err, HasSubstr("unknown option '--verbose'"));
}

TEST(CommandLine, StrayArgumentIsNamed) {
  const Outcome result = run_command({"models", "everything"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("unexpected argument 'everything'"));
}

TEST(CommandLine, OutputThatAFullDiskSwallowsIsAFault) {
  const std::string model = std::string(GRIDLESS_TEST_DATA) + "/llama_tiny/untied";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"models", "--json"}, {"run", model, "--tokens", "1,2"}}) {
    const Outcome result = run_command(arguments, {.output = "/dev/full"});
    EXPECT_EQ(result.status, 2) << arguments.front();
    EXPECT_THAT(result.err, HasSubstr("standard output is incomplete"));
  }
}

}  // namespace
}  // namespace gridless::testing
