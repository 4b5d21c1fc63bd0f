// The seeds of the fuzz targets are what the builders write. After a change of a builder, run this
// test with GRIDLESS_UPDATE_SEEDS=1 to write them again.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "gridless/base/mapped_file.h"
#include "tests/weights/builders.h"

namespace gridless::weights {
namespace {

using testing::Bytes;
using testing::GgufBuilder;

void check_seed(const std::string& name, const Bytes& want) {
  const std::string path = std::string(GRIDLESS_TEST_DATA) + "/fuzz/" + name;
  if (std::getenv("GRIDLESS_UPDATE_SEEDS")) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    const ByteView part = want;
    ASSERT_TRUE(write_file(path, {&part, 1}));
  }
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(Bytes(file->bytes().begin(), file->bytes().end()), want) << name;
}

TEST(FuzzSeeds, AreWhatTheBuildersWrite) {
  check_seed("weights_gguf_fuzz/small.gguf", testing::small_gguf());
  check_seed("weights_gguf_fuzz/empty.gguf", GgufBuilder().build());
  GgufBuilder tiny;
  tiny.text("general.architecture", "llama").u32("llama.attention.head_count", 2);
  tiny.tensor("rope_freqs.weight", {2}, 0, Bytes(8, 60));
  tiny.tensor("blk.0.attn_q.weight", {1, 8}, 0, Bytes(32, 61));
  check_seed("weights_gguf_fuzz/tiny.gguf", tiny.build());
  check_seed("weights_safetensors_fuzz/small.safetensors", testing::small_safetensors());
  Bytes index;
  testing::append_text(index,
                       R"({"metadata":{"total_size":8},"weight_map":{"a":"x.safetensors"}})");
  check_seed("weights_safetensors_fuzz/index.json", index);
}

}  // namespace
}  // namespace gridless::weights
