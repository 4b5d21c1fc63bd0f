// Files that do not fit a kernel: an error that names the file and what would fit, before any work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "gridless/weights/safetensors.h"
#include "tests/commands/run_command.h"
#include "tests/temporary_folder.h"

namespace gridless::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string corpus(const std::string& name) {
  return std::string(GRIDLESS_TEST_DATA) + "/corpus/" + name + "/module.mlir";
}

class BadFiles : public ::testing::Test {
 protected:
  std::string tensor(const std::string& name, weights::Dtype dtype, std::vector<int64_t> shape) {
    const std::string path = folder_.file("file.safetensors");
    int64_t elements = 1;
    for (const int64_t n : shape) elements *= n;
    const std::vector<uint8_t> zeros(static_cast<size_t>(elements) * 4);
    const std::vector<weights::TensorToWrite> tensors = {
        {.name = name, .dtype = dtype, .shape = std::move(shape), .bytes = zeros}};
    EXPECT_TRUE(weights::write_safetensors(path, tensors));
    return path;
  }
  void expect_error(const std::vector<std::string>& arguments,
                    const ::testing::Matcher<std::string>& message) {
    const Outcome outcome = run_command(arguments);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, message);
    EXPECT_EQ(outcome.out, "");
  }
  TemporaryFolder folder_;
};

TEST_F(BadFiles, ScalarsThatNameNothingOfTheKernel) {
  const std::string file = tensor("tabel", weights::Dtype::kI32, {4});
  expect_error({"check", corpus("p23_scalar_prefetch_grid"), "--scalars", file},
               AllOf(HasSubstr("holds tabel"), HasSubstr("it takes in0, in1")));
  expect_error({"exec", "kernel:18_named_source", "--inputs", file, "--scalars", file, "--outputs",
                folder_.file("out")},
               HasSubstr("it takes expert"));
}

TEST_F(BadFiles, TensorsOfAnotherFormatOfTheSameWidth) {
  const std::string file = tensor("in0", weights::Dtype::kI32, {8, 128});
  for (const char* command : {"check", "exec"}) {
    std::vector<std::string> arguments = {command, corpus("p01_dma_add_one"), "--inputs", file};
    if (command == std::string("exec")) {
      arguments.emplace_back("--outputs");
      arguments.push_back(folder_.file("out"));
    }
    expect_error(arguments, HasSubstr("in0 is I32 [8, 128], the kernel takes F32"));
  }
}

TEST_F(BadFiles, OutputsThatCannotBeWritten) {
  const std::string folder = folder_.file("");
  const std::string nowhere = folder_.file("no/such/file");
  const std::string kernel = corpus("p01_dma_add_one");
  expect_error({"check", kernel, "--schedule-out", folder}, HasSubstr("is a directory"));
  expect_error({"check", kernel, "--wait-for", nowhere}, HasSubstr("there is no directory"));
  const std::string data =
      std::string(GRIDLESS_TEST_DATA) + "/corpus/p01_dma_add_one/data.safetensors";
  expect_error({"exec", kernel, "--inputs", data, "--outputs", folder},
               HasSubstr("is a directory"));
  expect_error({"exec", kernel, "--inputs", data, "--outputs", nowhere},
               HasSubstr("there is no directory"));
}

TEST_F(BadFiles, AnEmptyKernelFile) {
  const std::string empty = folder_.file("empty.mlir");
  std::ofstream(empty).close();
  expect_error({"check", empty}, AllOf(HasSubstr("empty.mlir"), HasSubstr("the file is empty")));
}

TEST_F(BadFiles, ACallForMoreDevicesThanThereAre) {
  const std::string call = folder_.file("call.json");
  std::ofstream(call) << R"({"kernel_name": "k", "num_partitions": 100000,
    "operands": [{"shape": [8, 128], "dtype": "f32"}], "results": [{"shape": [8, 128], "dtype": "f32"}]})";
  expect_error({"check", corpus("p01_dma_add_one"), "--call", call},
               AllOf(HasSubstr("call.json"), HasSubstr("100000 devices; 1 to 128")));
}

}  // namespace
}  // namespace gridless::testing
