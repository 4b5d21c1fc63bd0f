#include "gridless/weights/safetensors.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "gridless/weights/dequantise.h"
#include "tests/weights/builders.h"

namespace gridless::weights {
namespace {

using ::testing::AllOf;
using testing::Bytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::safetensors_file;

std::string error_of(const Bytes& file) {
  const auto parsed = Safetensors::parse(file);
  return parsed ? "(no error)" : parsed.error().message;
}

std::string error_of(std::string_view header, size_t data_bytes) {
  return error_of(safetensors_file(header, data_bytes));
}

TEST(Safetensors, ReadsEveryKindOfEntry) {
  const Bytes file = testing::small_safetensors();
  const auto st = Safetensors::parse(file);
  ASSERT_TRUE(st) << st.error().message;
  EXPECT_EQ(st->metadata.at("format"), "pt");
  ASSERT_EQ(st->tensors.size(), 6u);
  const TensorView* a = st->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_THAT(a->shape, ElementsAre(2, 3));
  EXPECT_EQ(a->dtype, Dtype::kF32);
  EXPECT_EQ(a->row(1)[0], 12 * 7 + 1);
  EXPECT_EQ(st->find("scalar")->rows(), 1);
  EXPECT_EQ(st->find("scalar")->row_bytes(), 8);
  EXPECT_EQ(st->find("none")->stored.size(), 0u);
  EXPECT_EQ(st->find("fp4")->row_bytes(), 2);
  EXPECT_EQ(st->find("missing"), nullptr);
}

TEST(Safetensors, AnEmptyFileOfNoTensorsIsValid) { EXPECT_EQ(error_of("{}", 0), "(no error)"); }

TEST(SafetensorsCorrupted, HeaderLength) {
  EXPECT_THAT(error_of(Bytes{1, 2, 3}), HasSubstr("3 bytes"));
  EXPECT_THAT(error_of(safetensors_file("{}", 0, 1000)), HasSubstr("truncated"));
  EXPECT_THAT(error_of(safetensors_file("{}", 0, std::numeric_limits<int64_t>::max())),
              HasSubstr("not a safetensors file"));
  EXPECT_THAT(error_of("[]", 0), HasSubstr("does not start with"));
  EXPECT_THAT(error_of("{\"a\"", 0), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of(std::string("{\"\xff\":1}"), 0), HasSubstr("not valid JSON"));
}

TEST(SafetensorsCorrupted, EveryTruncationIsAnError) {
  const Bytes file = testing::small_safetensors();
  for (size_t n = 0; n < file.size(); ++n)
    ASSERT_FALSE(Safetensors::parse(ByteView(file).first(n))) << n;
}

TEST(SafetensorsCorrupted, EntriesNameTheTensor) {
  const auto with = [](const std::string& entry, size_t bytes = 8) {
    return error_of("{\"w\":" + entry + "}", bytes);
  };
  for (const char* broken :
       {"1", "{}", R"({"dtype":"F32","shape":[2]})",
        R"({"dtype":1,"shape":[2],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[0]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})",
        R"({"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]})"})
    EXPECT_THAT(with(broken), HasSubstr("'w'")) << broken;
  EXPECT_THAT(with(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})"),
              AllOf(HasSubstr("'w'"), HasSubstr("unknown dtype 'F33'")));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
              AllOf(HasSubstr("'w'"), HasSubstr("takes 12 bytes"), HasSubstr("span 8")));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})"),
              AllOf(HasSubstr("'w'"), HasSubstr("truncated")));
  EXPECT_THAT(with(R"({"dtype":"F4","shape":[2,3],"data_offsets":[0,3]})"),
              HasSubstr("whole bytes"));
  EXPECT_THAT(with(R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
              HasSubstr("absurd shape"));
  EXPECT_THAT(with(R"({"dtype":"U8","shape":[9223372036854775807,9223372036854775807,0],)"
                   R"("data_offsets":[0,0]})"),
              HasSubstr("absurd shape"));
}

TEST(SafetensorsCorrupted, OverlapHolesAndRest) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                       7),
              AllOf(HasSubstr("'a'"), HasSubstr("'b'"), HasSubstr("overlap")));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                       R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                       9),
              AllOf(HasSubstr("1 bytes before"), HasSubstr("'b'")));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 6),
              AllOf(HasSubstr("2 bytes after"), HasSubstr("'a'")));
}

TEST(SafetensorsCorrupted, DuplicatesAndMetadata) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                       R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                       1),
              HasSubstr("'a' appears twice"));
  EXPECT_THAT(error_of(R"({"__metadata__":[]})", 0), HasSubstr("__metadata__"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"k":1}})", 0), HasSubstr("'k'"));
}

TEST(SafetensorsIndex, NamesShardsAndRefusesPaths) {
  const auto good = parse_safetensors_index(R"({"weight_map":{"a":"x.safetensors","b":"y"}})");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->at("a"), "x.safetensors");
  for (const char* shard : {"../x", "/etc/passwd", "d/x", "", ".x"}) {
    const auto bad =
        parse_safetensors_index(fmt::format(R"({{"weight_map":{{"t":"{}"}}}})", shard));
    ASSERT_FALSE(bad) << shard;
    EXPECT_THAT(bad.error().message, AllOf(HasSubstr("'t'"), HasSubstr("no plain file name")));
  }
  EXPECT_FALSE(parse_safetensors_index(R"({"weight_map":{"t":1}})"));
  EXPECT_FALSE(parse_safetensors_index("{}"));
  EXPECT_FALSE(parse_safetensors_index("{"));
}

std::string scratch(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / fmt::format("{}_{}", ::getpid(), name))
      .string();
}

TEST(SafetensorsWriter, WideTypesComeFirstSoThatAllAreAligned) {
  const Bytes three(3, 1), four(4, 2), sixteen(16, 3);
  const std::vector<TensorToWrite> list = {{"bytes", Dtype::kU8, {3}, three},
                                           {"word", Dtype::kF32, {1}, four},
                                           {"doubles", Dtype::kF64, {2}, sixteen}};
  const std::string path = scratch("aligned.safetensors");
  ASSERT_TRUE(write_safetensors(path, list, {{"made", "here"}}));
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  const auto st = Safetensors::parse(file->bytes());
  ASSERT_TRUE(st) << st.error().message;
  EXPECT_EQ(st->metadata.at("made"), "here");
  for (const TensorView& t : st->tensors)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.stored.data()) % info(t.dtype).block_bytes, 0u)
        << t.name;
  EXPECT_EQ(st->tensors[0].name, "doubles");
  std::filesystem::remove(path);
}

RC_GTEST_PROP(SafetensorsProperty, WhatIsWrittenReadsBack, ()) {
  const std::vector<Dtype> types = {Dtype::kF64, Dtype::kF32, Dtype::kBF16, Dtype::kF16,
                                    Dtype::kU8,  Dtype::kI64, Dtype::kF4,   Dtype::kF8E4M3};
  std::vector<Bytes> data;
  std::vector<TensorToWrite> list;
  const int count = *rc::gen::inRange(0, 8);
  data.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    TensorToWrite t;
    t.name = std::to_string(i) + *rc::gen::container<std::string>(rc::gen::inRange<char>(32, 127));
    t.dtype = *rc::gen::elementOf(types);
    t.shape = *rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 5));
    if (t.shape.size() > 4) t.shape.resize(4);
    t.shape.push_back(2);
    uint64_t n = 1;
    for (const int64_t d : t.shape) n *= static_cast<uint64_t>(d);
    data.push_back(
        *rc::gen::container<Bytes>(*bytes_of(t.dtype, n), rc::gen::arbitrary<uint8_t>()));
    t.bytes = data.back();
    list.push_back(t);
  }
  const std::string path = scratch("property.safetensors");
  RC_ASSERT(write_safetensors(path, list).has_value());
  const auto file = MappedFile::open(path);
  RC_ASSERT(file.has_value());
  const auto st = Safetensors::parse(file->bytes());
  RC_ASSERT(st.has_value());
  RC_ASSERT(st->tensors.size() == list.size());
  for (const TensorToWrite& t : list) {
    const TensorView* got = st->find(t.name);
    RC_ASSERT(got != nullptr);
    RC_ASSERT(got->dtype == t.dtype);
    RC_ASSERT(got->shape == t.shape);
    RC_ASSERT(Bytes(got->stored.begin(), got->stored.end()) ==
              Bytes(t.bytes.begin(), t.bytes.end()));
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace gridless::weights
