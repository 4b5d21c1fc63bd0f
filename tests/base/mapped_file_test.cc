#include "gridless/base/mapped_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

namespace gridless {
namespace {

using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    dir_ = std::filesystem::path(::testing::TempDir()) / fmt::format("mapped_file_{}", ::getpid());
    std::filesystem::create_directories(dir_);
  }
  ~MappedFileTest() override { std::filesystem::remove_all(dir_); }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }
  std::filesystem::path dir_;
};

TEST_F(MappedFileTest, ReadsBackWhatWasWritten) {
  const std::vector<uint8_t> a = {1, 2, 3}, b = {}, c = {255, 0};
  const ByteView parts[] = {a, b, c};
  ASSERT_TRUE(write_file(path("f"), parts));
  auto file = MappedFile::open(path("f"));
  ASSERT_TRUE(file);
  EXPECT_THAT(file->bytes(), ::testing::ElementsAre(1, 2, 3, 255, 0));
  EXPECT_EQ(file->path(), path("f"));
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptyView) {
  ASSERT_TRUE(write_file(path("e"), ""));
  auto file = MappedFile::open(path("e"));
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(MappedFileTest, MovingKeepsViewsValid) {
  ASSERT_TRUE(write_file(path("f"), "text"));
  auto file = MappedFile::open(path("f"));
  ASSERT_TRUE(file);
  const ByteView before = file->bytes();
  MappedFile moved = std::move(*file);
  EXPECT_EQ(moved.bytes().data(), before.data());
  MappedFile memory = MappedFile::from_bytes({7, 8});
  const uint8_t* data = memory.bytes().data();
  moved = std::move(memory);
  EXPECT_EQ(moved.bytes().data(), data);
  EXPECT_THAT(moved.bytes(), ::testing::ElementsAre(7, 8));
}

TEST_F(MappedFileTest, WritingReplacesTheFileAndLeavesTheOldMappingWhole) {
  ASSERT_TRUE(write_file(path("f"), "old"));
  auto old = MappedFile::open(path("f"));
  ASSERT_TRUE(old);
  ASSERT_TRUE(write_file(path("f"), "newer"));
  EXPECT_THAT(old->bytes(), ::testing::ElementsAre('o', 'l', 'd'));
  EXPECT_EQ(*read_text_file(path("f")), "newer");
  // Nothing but the file itself is left behind.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

TEST_F(MappedFileTest, ErrorsNameThePathAndTheReason) {
  auto missing = MappedFile::open(path("no_such_file"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Error::Kind::kInput);
  EXPECT_THAT(missing.error().message, HasSubstr("no_such_file: cannot open: No such file"));
  auto directory = MappedFile::open(dir_.string());
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("is a directory"));
  auto device = MappedFile::open("/dev/null");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().message, HasSubstr("not a regular file"));
  auto unwritable = write_file(path("no/such/dir/f"), "x");
  ASSERT_FALSE(unwritable);
  EXPECT_THAT(unwritable.error().message, HasSubstr("cannot create"));
}

}  // namespace
}  // namespace gridless
