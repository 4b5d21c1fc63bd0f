// gridless exec, from the outside.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "gridless/base/mapped_file.h"
#include "gridless/weights/safetensors.h"
#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"

namespace gridless::testing {
namespace {

using ::testing::HasSubstr;

std::string corpus(const std::string& name) {
  return std::string(GRIDLESS_TEST_DATA) + "/corpus/" + name;
}

std::string scratch(const std::string& name) {
  static const TemporaryFolder folder;
  return folder.file(name);
}

Outcome exec(const std::string& kernel, const std::string& outputs,
             std::vector<std::string> more = {}) {
  std::vector<std::string> args = {"exec",      corpus(kernel) + "/module.mlir",
                                   "--inputs",  corpus(kernel) + "/data.safetensors",
                                   "--outputs", outputs};
  args.insert(args.end(), more.begin(), more.end());
  return run_command(args);
}

TEST(ExecCommand, SeveralCoresGiveResultsWithACoreAxis) {
  const std::string path = scratch("all_reduce");
  const Outcome result = exec("b5_all_reduce_8dev", path, {"--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const nlohmann::json answer = nlohmann::json::parse(result.out);
  EXPECT_EQ(answer["engine"], "emulate");
  EXPECT_EQ(answer["outputs"]["out0"]["shape"], (std::vector<int>{8, 8, 8, 128}));
  EXPECT_EQ(answer["outputs"]["out0"]["dtype"], "F32");
  const auto got_file = MappedFile::open(path);
  const auto want_file = MappedFile::open(corpus("b5_all_reduce_8dev/data.safetensors"));
  ASSERT_TRUE(got_file && want_file);
  const auto got = weights::Safetensors::parse(got_file->bytes());
  const auto want = weights::Safetensors::parse(want_file->bytes());
  ASSERT_TRUE(got && want);
  const ByteView a = got->find("out0")->stored, b = want->find("out0")->stored;
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); k += 4) {
    float x, y;
    std::memcpy(&x, a.data() + k, 4);
    std::memcpy(&y, b.data() + k, 4);
    ASSERT_NEAR(x, y, 1e-5 + 1e-5 * std::abs(y));  // the corpus's own tolerance
  }
}

TEST(ExecCommand, TheFastEngineWritesTheFileThatTheEmulatorWrites) {
  for (const std::string kernel :
       {"b5_all_reduce_8dev", "p22_inplace_cache_update", "p05_matmul_bf16"}) {
    const std::string slow = scratch("emulate"), fast = scratch("cpu");
    ASSERT_EQ(exec(kernel, slow).status, 0);
    const Outcome result = exec(kernel, fast, {"--engine", "cpu", "--json"});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out)["engine"], "cpu");
    const auto a = MappedFile::open(slow), b = MappedFile::open(fast);
    ASSERT_TRUE(a && b);
    EXPECT_TRUE(std::ranges::equal(a->bytes(), b->bytes())) << kernel;
  }
}

TEST(ExecCommand, EveryFormOfAKernelGivesTheSameBytes) {
  for (const std::string kernel : {"p31_exchange_2dev", "p13_argmax_reduce"}) {
    std::vector<std::string> results;
    for (const char* form :
         {"module.mlir", "module.mlirbc", "module_v13.mlirbc", "jax.stablehlo.mlir"}) {
      const std::string path = scratch(kernel + form);
      const Outcome result = run_command({"exec", corpus(kernel + "/" + form), "--inputs",
                                          corpus(kernel + "/data.safetensors"), "--outputs", path});
      ASSERT_EQ(result.status, 0) << form << result.err;
      const auto file = MappedFile::open(path);
      ASSERT_TRUE(file);
      results.emplace_back(reinterpret_cast<const char*>(file->bytes().data()),
                           file->bytes().size());
      EXPECT_TRUE(results.back() == results.front()) << kernel << " " << form;
    }
  }
}

TEST(ExecCommand, ADeadlockNamesEveryCoreAndWhatItWaitsFor) {
  const Outcome result = exec("q10_deadlock_two_devices", scratch("deadlock"));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("deadlock: 2 of 2 cores wait for ever"));
  EXPECT_THAT(result.err,
              HasSubstr("core 1 at " + corpus("q10_deadlock_two_devices/module.mlir:")));
  EXPECT_THAT(result.err, HasSubstr("needs 1, has 0"));
}

TEST(ExecCommand, InputsOfAnotherShapeAreRefusedByName) {
  const Outcome result = run_command({"exec", corpus("p01_dma_add_one/module.mlir"), "--inputs",
                                      corpus("p02_double_buffer_stream/data.safetensors"),
                                      "--outputs", scratch("refused")});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("in0 is F32 [6, 16, 128], the kernel takes F32 [8, 128]"));
}

TEST(ExecCommand, AMissingTensorAndAMissingCallAreSaid) {
  const Outcome tensor =
      run_command({"exec", corpus("p29_two_dmas_one_semaphore/module.mlir"), "--inputs",
                   corpus("p01_dma_add_one/data.safetensors"), "--outputs", scratch("refused")});
  EXPECT_EQ(tensor.status, 1);
  EXPECT_THAT(tensor.err, HasSubstr("has no tensor in1"));
  const std::string lonely = scratch("lonely.mlir");
  std::filesystem::copy_file(corpus("p01_dma_add_one/module.mlir"), lonely);
  const Outcome call =
      run_command({"exec", lonely, "--inputs", corpus("p01_dma_add_one/data.safetensors"),
                   "--outputs", scratch("refused")});
  EXPECT_EQ(call.status, 1);
  EXPECT_THAT(call.err, HasSubstr("--call call.json"));
}

}  // namespace
}  // namespace gridless::testing
