// gridless bundles on recorded dumps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/commands/run_command.h"

namespace gridless::testing {
namespace {

using ::testing::HasSubstr;

const std::string kData = GRIDLESS_TEST_DATA "/bundles/";

TEST(BundlesCommand, PrintsTextJsonAndAPage) {
  const auto text = run_command({"bundles", kData + "matmul"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("kernels/05_matmul.cc:40"));

  const std::string page =
      (std::filesystem::path(::testing::TempDir()) / "bundles_command.html").string();
  const auto json = run_command({"bundles", kData + "matmul", "--json", "--html", page});
  EXPECT_EQ(json.status, 0) << json.err;
  EXPECT_EQ(nlohmann::json::parse(json.out)["cycles"], 333);
  std::ifstream file(page);
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(html.starts_with("<!doctype html>"));
  std::filesystem::remove(page);
}

TEST(BundlesCommand, ComparesTwo) {
  const auto diff =
      run_command({"bundles", kData + "matmul", "--diff", kData + "softmax", "--json"});
  EXPECT_EQ(diff.status, 0) << diff.err;
  EXPECT_EQ(nlohmann::json::parse(diff.out)["totals"][0]["before"], 333);
}

TEST(BundlesCommand, SaysWhatIsWrongWithTheInput) {
  const auto missing = run_command({"bundles", "/nowhere"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("/nowhere"));
  const auto other = run_command({"bundles", kData + "matmul/utilization.txt"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("no instruction bundles"));
}

}  // namespace
}  // namespace gridless::testing
