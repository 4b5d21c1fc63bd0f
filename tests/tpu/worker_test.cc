// The compiler and its worker against a plugin that injects every class of fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "gridless/tpu/compiler.h"

namespace gridless::tpu {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

// Sets MOCK_PJRT for one test; the worker inherits it.
class MockMode {
 public:
  explicit MockMode(const char* mode) { setenv("MOCK_PJRT", mode, 1); }
  ~MockMode() { unsetenv("MOCK_PJRT"); }
};

CompilerOptions mock_options() {
  CompilerOptions options;
  options.libtpu.path = GRIDLESS_TEST_PLUGINS "/mock_pjrt.so";
  options.time_limit = std::chrono::seconds(20);
  return options;
}

CompileJob job(std::string name, std::string text, int cores = 1) {
  return {.name = std::move(name),
          .stablehlo = std::move(text),
          .body_file = "kernel.mlir",
          .cores = cores};
}

TEST(Worker, ReturnsTheExecutableAndEveryStatistic) {
  Compiler compiler(mock_options());
  const auto result = compiler.compile(job("add", "module @add {}"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->diagnostics.empty());
  ASSERT_TRUE(result->compiled);
  EXPECT_THAT(result->compiled->executable, StartsWith("MOCKmodule @add {}|"));
  EXPECT_EQ(result->compiled->code_bytes, 1234);
  EXPECT_EQ(result->compiled->memory.arguments, 11);
  EXPECT_EQ(result->compiled->memory.results, 22);
  EXPECT_EQ(result->compiled->memory.aliased, 33);
  EXPECT_EQ(result->compiled->memory.temporary, 44);
  EXPECT_EQ(result->compiled->memory.peak, 55);
  EXPECT_EQ(compiler.platform_version(), "mock 1");
}

TEST(Worker, CarriesProgramsLargerThanAnyPipe) {
  Compiler compiler(mock_options());
  const std::string big(size_t{5} << 20, 'b');
  const auto result = compiler.compile(job("big", big));
  ASSERT_TRUE(result && result->compiled);
  EXPECT_EQ(result->compiled->executable.substr(4, big.size()), big);
}

TEST(Worker, TakesManyJobsInOneProcess) {
  Compiler compiler(mock_options());
  const auto results =
      compiler.compile(std::vector<CompileJob>{job("a", "a"), job("b", "b"), job("c", "c")});
  ASSERT_TRUE(results);
  ASSERT_EQ(results->size(), 3u);
  for (const CompileResult& result : *results) EXPECT_TRUE(result.compiled) << result.name;
  EXPECT_EQ(compiler.workers_started(), 1);
}

TEST(Worker, ErrorTextBecomesADiagnosticAtTheSourceLine) {
  Compiler compiler(mock_options());
  const auto result = compiler.compile(
      job("dma",
          "mock:error Mosaic failed to compile TPU kernel with MLIR module name `m` HLO name "
          "`m.1`: DMA source and target shape mismatch.\n\nat location: "
          "loc(\"step.cc\":111:11)\n"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_FALSE(result->compiled);
  ASSERT_EQ(result->diagnostics.size(), 1u);
  EXPECT_EQ(result->diagnostics[0].message, "DMA source and target shape mismatch.");
  EXPECT_EQ(result->diagnostics[0].where, SourceLoc("step.cc", 111, 11));
  EXPECT_EQ(compiler.workers_started(), 1);
}

TEST(Worker, MachineFaultsOfThePluginAreErrorsAndNotDiagnostics) {
  Compiler compiler(mock_options());
  const auto result = compiler.compile(job("dma", "mock:machine"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::kMachine);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("dma"), HasSubstr("out of sorts")));
}

TEST(Worker, AnAbortNamesTheSignalAndTheLastWords) {
  Compiler compiler(mock_options());
  const auto results = compiler.compile(
      std::vector<CompileJob>{job("first", "ok"), job("bad", "mock:abort"), job("last", "ok")});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_TRUE((*results)[0].compiled);
  EXPECT_FALSE((*results)[1].compiled);
  EXPECT_TRUE((*results)[2].compiled) << "the jobs after a crash run in a fresh worker";
  EXPECT_EQ(compiler.workers_started(), 2);
  const Diagnostic& crash = (*results)[1].diagnostics.at(0);
  EXPECT_EQ(crash.kind, "compiler_crash");
  EXPECT_THAT(crash.message, AllOf(HasSubstr("'bad'"), HasSubstr("SIGABRT")));
  EXPECT_THAT(crash.notes, Contains(HasSubstr("Custom barrier sync flag is not set")));
}

TEST(Worker, ASegmentationFaultIsReported) {
  Compiler compiler(mock_options());
  const auto result = compiler.compile(job("bad", "mock:segv"));
  ASSERT_TRUE(result);
  EXPECT_THAT(result->diagnostics.at(0).message, HasSubstr("SIGSEGV"));
}

TEST(Worker, AQuietExitIsReported) {
  Compiler compiler(mock_options());
  const auto result = compiler.compile(job("bad", "mock:exit"));
  ASSERT_TRUE(result);
  EXPECT_THAT(result->diagnostics.at(0).message, HasSubstr("exit status 7"));
}

TEST(Worker, AHangEndsAtTheTimeLimit) {
  CompilerOptions options = mock_options();
  options.time_limit = std::chrono::milliseconds(1500);
  Compiler compiler(std::move(options));
  const auto start = std::chrono::steady_clock::now();
  const auto result = compiler.compile(job("slow", "mock:hang"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->diagnostics.at(0).kind, "compiler_timeout");
  EXPECT_THAT(result->diagnostics.at(0).message, HasSubstr("within 1.5 s"));
  EXPECT_THAT(result->diagnostics.at(0).notes, Contains(HasSubstr("thinking about it")));
  const auto next = compiler.compile(job("next", "ok"));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(next->compiled);
}

TEST(Worker, HoardingEndsAtTheMemoryLimit) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers reserve terabytes of address space, so the limit is off";
#endif
  CompilerOptions options = mock_options();
  options.memory_limit_bytes = int64_t{512} << 20;
  Compiler compiler(std::move(options));
  const auto result = compiler.compile(job("greedy", "mock:memory"));
  ASSERT_TRUE(result);
  ASSERT_FALSE(result->diagnostics.empty());
  EXPECT_EQ(result->diagnostics[0].kind, "compiler_crash");
  EXPECT_THAT(result->diagnostics[0].hint, HasSubstr("512 MiB"));
}

TEST(Worker, MoreCoresThanTheSliceHasIsAnInputError) {
  Compiler compiler(mock_options());
  const auto result = compiler.compile(job("wide", "ok", 3));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::kInput);
  EXPECT_THAT(result.error().message, HasSubstr("tpu7x:1x1x1 has 2"));
}

std::string load_error(const char* mode) {
  const MockMode scope(mode);
  Compiler compiler(mock_options());
  const auto result = compiler.compile(job("any", "ok"));
  if (result) return "no error";
  EXPECT_EQ(result.error().kind, Error::Kind::kMachine);
  return result.error().message;
}

TEST(Worker, RefusesPluginsThatItCannotTalkTo) {
  EXPECT_THAT(load_error("small_table"), HasSubstr("too old"));
  EXPECT_THAT(load_error("no_compile"), HasSubstr("too old"));
  EXPECT_THAT(load_error("major"), HasSubstr("speaks PJRT 3.116"));
  EXPECT_THAT(load_error("init_error"), HasSubstr("no such luck"));
  EXPECT_THAT(load_error("init_abort"), AllOf(HasSubstr("SIGABRT"), HasSubstr("cannot start")));
}

TEST(Worker, RefusesADeviceNumberingThatIsNotOurs) {
  const MockMode scope("renumbered");
  Compiler compiler(mock_options());
  CompileJob wide = job("wide", "ok", 4);
  wide.slice.shape = {1, 2, 1};
  const auto result = compiler.compile(wide);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("unlike this program"));
}

TEST(Worker, AMissingOrForeignLibraryIsNamed) {
  CompilerOptions options = mock_options();
  options.libtpu.path = "/nowhere/libtpu.so";
  Compiler missing(options);
  EXPECT_THAT(missing.compile(job("any", "ok")).error().message, HasSubstr("/nowhere/libtpu.so"));
  options.libtpu.path = GRIDLESS_TEST_DATA "/corpus/README.md";
  Compiler foreign(options);
  EXPECT_THAT(foreign.compile(job("any", "ok")).error().message, HasSubstr("cannot load"));
}

TEST(Worker, AWorkerThatIsNoWorkerIsAnError) {
  CompilerOptions options = mock_options();
  options.worker_command = {"/bin/false"};
  Compiler silent(options);
  EXPECT_THAT(silent.compile(job("any", "ok")).error().message, HasSubstr("exit status 1"));
  options.worker_command = {"/nowhere/gridless"};
  Compiler missing(options);
  EXPECT_THAT(missing.compile(job("any", "ok")).error().message, HasSubstr("/nowhere/gridless"));
}

}  // namespace
}  // namespace gridless::tpu
