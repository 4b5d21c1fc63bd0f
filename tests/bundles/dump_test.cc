// Where dumps are found: compile's folder, libtpu's own, a single file.
#include "gridless/bundles/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/bundles/recorded.h"

namespace gridless::bundles {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DumpTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              fmt::format("dump_{}_{}",
                          testing::UnitTest::GetInstance()->current_test_info()->name(), getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const fs::path& name, std::string_view text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  fs::path folder_;
};

TEST_F(DumpTest, WhatIsKeptReadsBackTheSame) {
  const Dump dump{.kernel = "ring.3",
                  .schedule = "0 : {}\n",
                  .code = "0 : { %1 = sfence }\n",
                  .critical_path = "Length",
                  .vmem = {.bytes = 4096, .spill_bytes = 512},
                  .estimated_cycles = 77};
  for (const char* inner : {"schedule", "."}) {
    for (const auto& [name, text] : dump_files(dump)) write(fs::path(inner) / name, text);
    const auto read = read_dump(folder_);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->kernel, "ring.3");
    EXPECT_EQ(read->schedule, dump.schedule);
    EXPECT_EQ(read->code, dump.code);
    EXPECT_EQ(read->critical_path, dump.critical_path);
    EXPECT_EQ(read->vmem.bytes, 4096);
    EXPECT_EQ(read->vmem.spill_bytes, 512);
    EXPECT_EQ(read->estimated_cycles, 77);
    fs::remove_all(folder_ / "schedule");
  }
}

TEST_F(DumpTest, PicksTheKernelOutOfWhatLibtpuWrites) {
  write("17-TLP-03-packed-bundles-post-ra.txt", std::string(900, ' '));
  write("17-copy.4.kv-03-packed-bundles-post-ra.txt", std::string(800, ' '));
  write("17-step-two.12-03-packed-bundles-post-ra.txt", "two");
  write("17-step-two.12-02-schedule-analysis_packed-bundles-post-ra.txt", "not this");
  write("17-step-two.12-06-final_bundles.txt", "code of two");
  write("step-two.12_TPU7x_static_llo_profile.textproto",
        "hlo_op_estimate {\n  estimated_cycles: 9543\n}\n");
  write("17-step.1-03-packed-bundles-post-ra.txt", "one");
  write("17-TLP-07-vmem_report.html",
        R"(<script>const DATA = {"hlo_breakdowns": {"step-two.12": {"total_size": 99, "blocks":
[{"allocations": [{"tag": "SPILL", "size": 7}, {"tag": "x", "size": 92}]}]}}
};</script>)");
  const auto named = collect_dump(folder_, "step");
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(named->kernel, "step.1");
  EXPECT_EQ(named->schedule, "one");
  // "step" with more behind it than a number is another kernel.
  const auto two = collect_dump(folder_, "step-two");
  EXPECT_EQ(two->kernel, "step-two.12");
  EXPECT_EQ(two->code, "code of two");
  EXPECT_EQ(two->vmem.bytes, 99);
  EXPECT_EQ(two->vmem.spill_bytes, 7);
  EXPECT_EQ(two->estimated_cycles, 9543);
  EXPECT_FALSE(named->estimated_cycles);
  const auto unnamed = read_dump(folder_);
  EXPECT_EQ(unnamed->schedule.size(), 3u);
}

TEST_F(DumpTest, ASingleFileIsTheScheduleUnlessItsNameSaysCode) {
  const std::string folder = recorded_folder("matmul");
  EXPECT_GT(read_dump(folder + "/packed-bundles-post-ra.txt")->schedule.size(), 0u);
  EXPECT_GT(read_dump(folder + "/final_bundles.txt")->code.size(), 0u);
}

TEST_F(DumpTest, ABrokenSummaryIsNamed) {
  write("packed-bundles-post-ra.txt", "0 : {}\n");
  for (const char* text : {"{", "{}", "[1]", R"({"kernel": 3})"}) {
    write("summary.json", text);
    const auto read = read_dump(folder_);
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr("summary.json")) << text;
  }
}

TEST_F(DumpTest, SaysWhatIsMissing) {
  EXPECT_THAT(read_dump(folder_ / "nowhere").error().message, HasSubstr("no such file"));
  EXPECT_THAT(read_dump(folder_).error().message, HasSubstr("no schedule of a kernel"));
}

}  // namespace
}  // namespace gridless::bundles
