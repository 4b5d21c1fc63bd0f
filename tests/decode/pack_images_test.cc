// Packed images against what ShardedModel::fill() gives, stopped in the middle, damaged, and run.
#include "gridless/decode/pack_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "gridless/base/json.h"
#include "gridless/decode/runner.h"
#include "gridless/weights/safetensors.h"
#include "tests/temporary_folder.h"

namespace gridless::decode {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using weights::Checkpoint;
using weights::ImageManifest;
using weights::Images;

const std::string kTiny = GRIDLESS_TEST_DATA "/llama_tiny/untied";

class PackImages : public ::testing::Test {
 protected:
  Result<ImageManifest> pack(const std::string& folder, PackOptions options = {.cores = 2},
                             const PackProgress& progress = nullptr) {
    return pack_images(checkpoint_, *model_, options, temporary_.file(folder), progress);
  }
  std::string bytes(const std::string& folder, const std::string& file) const {
    std::ifstream in(temporary_.path() / folder / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void change(const std::string& folder, const std::string& file, size_t at) const {
    std::fstream f(temporary_.path() / folder / file,
                   std::ios::binary | std::ios::in | std::ios::out);
    f.seekg(static_cast<std::streamoff>(at));
    const char c = static_cast<char>(f.get());
    f.seekp(static_cast<std::streamoff>(at));
    f.put(static_cast<char>(c ^ 1));
  }

  Checkpoint checkpoint_ = *Checkpoint::open(kTiny);
  std::unique_ptr<models::Model> model_ = *models::model_of(checkpoint_.config());
  ::gridless::testing::TemporaryFolder temporary_;
};

TEST_F(PackImages, HoldWhatTheModelFillsItsOperandsWith) {
  const auto one = pack("one", {.cores = 2}), three = pack("three", {.cores = 2, .threads = 3});
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_EQ(one->to_json(), three->to_json());
  const auto sharded = *model_->on_cores(2, {});
  std::vector<std::string> names;
  for (const weights::ImageFile& f : one->files) {
    names.push_back(f.name());
    std::vector<std::byte> expected(f.bytes);
    ASSERT_TRUE(sharded->fill(checkpoint_, f.operand, std::max(f.core, 0), expected));
    const std::string_view text(reinterpret_cast<const char*>(expected.data()), expected.size());
    EXPECT_TRUE(text == bytes("one", f.name())) << f.name();
    EXPECT_TRUE(text == bytes("three", f.name())) << f.name();
  }
  EXPECT_THAT(names, ElementsAre("embedding.bin", "norms.bin", "frequencies.bin",
                                 "weights.core0000.bin", "weights.core0001.bin"));
  const auto again = pack("one");
  ASSERT_TRUE(again) << "nothing is left to do";
  EXPECT_EQ(again->to_json(), one->to_json());
}

TEST_F(PackImages, GoOnWhereTheyWereStopped) {
  ASSERT_TRUE(pack("whole"));
  const auto stop = [](uint64_t done, uint64_t all) { return 2 * done < all; };
  EXPECT_THAT(pack("half", {.cores = 2}, stop).error().message, HasSubstr("stopped"));
  const fs::path journal = temporary_.path() / "half/images.partial.jsonl";
  const auto text = read_text_file(journal.string());
  ASSERT_TRUE(text);
  std::ofstream(journal, std::ios::app) << R"({"file":"weights.core0001.bin","beg)";
  // What the journal has is not done again: a byte changed in it stays.
  change("half", "embedding.bin", 5);
  const auto m = pack("half");
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_FALSE(fs::exists(journal));
  for (const weights::ImageFile& f : m->files)
    EXPECT_EQ(bytes("half", f.name()) == bytes("whole", f.name()), f.operand != "embedding")
        << f.name();
  const Images images = *Images::open(temporary_.file("half"));
  for (size_t k = 0; k < m->files.size(); ++k) {
    const auto same = images.verify(k);
    EXPECT_EQ(same.has_value(), m->files[k].operand != "embedding");
    if (!same) {
      EXPECT_THAT(same.error().message, HasSubstr("embedding.bin: bytes 0 to"));
    }
  }
}

TEST_F(PackImages, OfOtherOptionsAreNotMixed) {
  ASSERT_TRUE(pack("two"));
  EXPECT_THAT(pack("two", {.cores = 1}).error().message, HasSubstr("holds other images"));
  EXPECT_FALSE(pack("begun", {.cores = 2}, [](uint64_t, uint64_t) { return false; }));
  EXPECT_THAT(pack("begun", {.cores = 1}).error().message, HasSubstr("other images were begun"));
  EXPECT_FALSE(pack("uneven", {.cores = 7}));
  const Checkpoint packed = *Checkpoint::open(temporary_.file("two"));
  EXPECT_THAT(pack_images(packed, *model_, {}, temporary_.file("again")).error().message,
              HasSubstr("packed images already"));
}

TEST_F(PackImages, NameTensorsThatNoOperandHolds) {
  std::vector<weights::TensorToWrite> tensors;
  for (const weights::TensorView& t : checkpoint_.tensors())
    tensors.push_back({t.name, t.dtype, t.shape, t.stored});
  const std::vector<uint8_t> more(8);
  tensors.push_back({"mtp.layers.0.norm.weight", weights::Dtype::kF32, {2}, more});
  tensors.push_back({"visual.patch.weight", weights::Dtype::kF32, {2}, more});
  ASSERT_TRUE(write_safetensors(temporary_.file("model.safetensors"), tensors));
  fs::copy_file(kTiny + "/config.json", temporary_.path() / "config.json");
  const Checkpoint extended = *Checkpoint::open(temporary_.file("model.safetensors"));
  const auto m = pack_images(extended, *model_, {.cores = 1}, temporary_.file("images"));
  ASSERT_TRUE(m) << m.error().message;
  EXPECT_THAT(m->left_out, ElementsAre("mtp.layers.0.norm.weight", "visual.patch.weight"));
}

TEST_F(PackImages, RunAsTheCheckpointDoes) {
  ASSERT_TRUE(pack("images"));
  const Checkpoint packed = *Checkpoint::open(temporary_.file("images"));
  EXPECT_TRUE(packed.tensors().empty());
  const RunnerOptions options{.cores = 2, .context = 128};
  const auto plain = *StepRunner::load(checkpoint_, options);
  const auto runner = StepRunner::load(packed, options);
  ASSERT_TRUE(runner) << runner.error().message;
  std::vector<float> a(static_cast<size_t>(plain->vocab())), b = a;
  for (int32_t at = 0; at < 5; ++at) {
    const Row row{.token = 7 * at + 3, .position = at};
    ASSERT_TRUE(plain->step({&row, 1}));
    ASSERT_TRUE((*runner)->step({&row, 1}));
    ASSERT_TRUE(plain->logits(0, a));
    ASSERT_TRUE((*runner)->logits(0, b));
    EXPECT_EQ(a, b);
  }
  EXPECT_THAT(StepRunner::load(packed, {.cores = 1}).error().message,
              HasSubstr("for 2 cores, not 1: give --cores 2"));
  EXPECT_THAT(
      StepRunner::load(packed, {.cores = 2, .format = weights::Format::kQ8}).error().message,
      HasSubstr("not in q8"));
}

TEST_F(PackImages, DamagedFoldersAreRefused) {
  ASSERT_TRUE(pack("images"));
  const std::string folder = temporary_.file("images");
  const auto text = *read_text_file(folder + "/images.json");
  const auto with = [&](const std::function<void(nlohmann::json&)>& edit) {
    nlohmann::json m = *parse_json(text, "");
    edit(m);
    return ImageManifest::parse(m.dump(), "m").error().message;
  };
  EXPECT_THAT(with([](auto& m) { m["gridless_images"] = 9; }), HasSubstr("format 9"));
  EXPECT_THAT(with([](auto& m) { m.erase("cores"); }), HasSubstr("'cores' is missing"));
  EXPECT_THAT(with([](auto& m) { m["layout"] = 3; }), HasSubstr("'layout' has the wrong type"));
  EXPECT_THAT(with([](auto& m) { m["files"][0]["operand"] = "../x"; }),
              HasSubstr("files[0]: not the name of an operand"));
  EXPECT_THAT(with([](auto& m) { m["files"][1]["pieces"][0]["end"] = 1 << 30; }),
              HasSubstr("files[1]: a piece: 'end'"));
  EXPECT_THAT(with([](auto& m) { m["files"] = nlohmann::json::array({3}); }),
              HasSubstr("files[0]: not an object"));
  fs::resize_file(folder + "/norms.bin", 100);
  EXPECT_THAT(Checkpoint::open(folder).error().message, HasSubstr("norms.bin: has 100 bytes"));
  fs::remove(folder + "/norms.bin");
  EXPECT_THAT(Checkpoint::open(folder).error().message, HasSubstr("norms.bin: cannot open"));
}

}  // namespace
}  // namespace gridless::decode
