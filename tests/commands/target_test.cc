// kernel:NAME[?key=value&...] as a TARGET.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/commands/run_command.h"

namespace gridless::testing {
namespace {

using ::testing::HasSubstr;

Outcome exec(const std::string& target, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {
      "exec", target, "--inputs", "none.safetensors", "--outputs", "none.safetensors"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(arguments);
}

TEST(KernelTarget, WrongOnesSayWhatIsRight) {
  const std::pair<std::string, std::string> cases[] = {
      {"kernel:nothing", "01_add"},
      {"kernel:05_matmul?rows=1", "has no option rows; it has: k"},
      {"kernel:05_matmul?k", "'k' is not key=value"},
      {"kernel:05_matmul?k=256&k=512", "k is given twice"},
      {"kernel:05_matmul?k=100", "a multiple of 256"},
      {"kernel:", "a name or a path is missing"},
  };
  for (const auto& [target, words] : cases) {
    const Outcome result = exec(target);
    EXPECT_EQ(result.status, 1) << target;
    EXPECT_THAT(result.err, HasSubstr(words)) << target;
  }
}

TEST(KernelTarget, CoresReachKernelsThatHaveThem) {
  EXPECT_THAT(exec("kernel:05_matmul", {"--cores", "2"}).err, HasSubstr("is for one core"));
  EXPECT_THAT(exec("kernel:14_barrier_and_shift", {"--cores", "64"}).err,
              HasSubstr("from 2 to 32"));
}

}  // namespace
}  // namespace gridless::testing
