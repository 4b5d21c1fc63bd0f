#include "gridless/weights/gguf.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "gridless/weights/dequantise.h"
#include "tests/weights/builders.h"

namespace gridless::weights {
namespace {

using ::testing::AllOf;
using testing::append;
using testing::Bytes;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;

constexpr uint32_t kF32Number = 0;
constexpr uint32_t kQ8_0Number = 8;

std::string error_of(const Bytes& file) {
  const auto parsed = Gguf::parse(file);
  return parsed ? "(no error)" : parsed.error().message;
}

Bytes floats(size_t n) { return Bytes(4 * n, 0); }

TEST(Gguf, MetadataOfEveryTypeReadsBack) {
  const Bytes file = testing::small_gguf();
  const auto gguf = Gguf::parse(file);
  ASSERT_TRUE(gguf) << gguf.error().message;
  EXPECT_EQ(gguf->version, 3u);
  const auto integer = [&](const char* key) { return gguf->find(key)->integer(); };
  EXPECT_EQ(integer("t.u8"), 200);
  EXPECT_EQ(integer("t.i8"), -100);
  EXPECT_EQ(integer("t.u16"), 60000);
  EXPECT_EQ(integer("t.i16"), -30000);
  EXPECT_EQ(integer("t.i32"), -2000000000);
  EXPECT_EQ(integer("t.u64"), int64_t{1} << 40);
  EXPECT_EQ(integer("t.i64"), -(int64_t{1} << 40));
  EXPECT_EQ(gguf->find("t.f64")->number(), 0.1);
  EXPECT_EQ(gguf->find("llama.rope.freq_base")->number(), 10000.0);
  EXPECT_EQ(gguf->find("t.bool")->boolean(), true);
  EXPECT_EQ(gguf->find("general.architecture")->string(), "llama");
  EXPECT_THAT(gguf->find("tokenizer.ggml.tokens")->array()->strings,
              ElementsAre("a", "b", "ab", "", "\xc4\xa0x"));
  const GgufArray* numbers = gguf->find("t.numbers")->array();
  ASSERT_EQ(numbers->count, 3u);
  EXPECT_EQ(numbers->number(1).integer(), -2);
  const GgufArray* nested = gguf->find("t.nested")->array();
  ASSERT_EQ(nested->arrays.size(), 2u);
  EXPECT_EQ(nested->arrays[1].array()->number(0).integer(), 5);
  EXPECT_EQ(gguf->find("no.such.key"), nullptr);
}

TEST(Gguf, TensorsPointIntoTheFileWithRowMajorShapes) {
  const Bytes file = testing::small_gguf();
  const auto gguf = Gguf::parse(file);
  ASSERT_TRUE(gguf);
  ASSERT_EQ(gguf->tensors.size(), 10u);
  const TensorView& embedding = gguf->tensors[0];
  EXPECT_EQ(embedding.name, "token_embd.weight");
  EXPECT_EQ(embedding.dtype, Dtype::kQ8_0);
  EXPECT_THAT(embedding.shape, ElementsAre(3, 32));
  EXPECT_EQ(embedding.row_bytes(), 34);
  EXPECT_EQ(embedding.stored.data(), file.data() + gguf->data_offset);
  EXPECT_EQ(gguf->data_offset % 32, 0u);
  EXPECT_EQ(embedding.row(2)[0], static_cast<uint8_t>(68 * 31 + 7));
}

TEST(Gguf, Version2ReadsAsVersion3) {
  GgufBuilder b;
  b.version = 2;
  b.tensor("x", {2}, kF32Number, floats(2));
  EXPECT_TRUE(Gguf::parse(b.build()));
}

TEST(Gguf, OtherAlignmentsAreHonoured) {
  for (const uint64_t alignment : {8, 64, 4096}) {
    GgufBuilder b;
    b.alignment = alignment;
    b.u32("general.alignment", static_cast<uint32_t>(alignment));
    b.tensor("x", {3}, kF32Number, floats(3)).tensor("y", {1}, kF32Number, {1, 2, 3, 4});
    const Bytes file = b.build();
    const auto gguf = Gguf::parse(file);
    ASSERT_TRUE(gguf) << gguf.error().message;
    EXPECT_THAT(gguf->tensors[1].stored, ElementsAre(1, 2, 3, 4));
  }
}

TEST(GgufCorrupted, MagicAndVersion) {
  EXPECT_THAT(error_of({}), HasSubstr("not a GGUF file"));
  GgufBuilder b;
  b.magic = "GGML";
  EXPECT_THAT(error_of(b.build()), HasSubstr("not a GGUF file"));
  b.magic = "GGUF";
  b.version = 1;
  EXPECT_THAT(error_of(b.build()), HasSubstr("version 1 is not supported"));
  b.version = 0x03000000;
  EXPECT_THAT(error_of(b.build()), HasSubstr("big-endian"));
}

TEST(GgufCorrupted, EveryTruncationIsAnError) {
  const Bytes file = testing::small_gguf();
  for (size_t n = 0; n < file.size(); ++n) {
    const auto parsed = Gguf::parse(ByteView(file).first(n));
    ASSERT_FALSE(parsed) << n;
    ASSERT_FALSE(parsed.error().message.empty());
  }
}

TEST(GgufCorrupted, TruncatedDataNamesTheTensor) {
  Bytes file =
      GgufBuilder().tensor("first", {2}, 0, floats(2)).tensor("last", {9}, 0, floats(9)).build();
  file.pop_back();
  EXPECT_THAT(error_of(file), AllOf(HasSubstr("'last'"), HasSubstr("[9]"), HasSubstr("truncated")));
}

TEST(GgufCorrupted, LyingCountsAllocateNothing) {
  for (const int64_t claim :
       {int64_t{1000}, int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
    GgufBuilder tensors;
    tensors.claimed_tensors = claim;
    EXPECT_THAT(error_of(tensors.build()), HasSubstr("tensors, which"));
    GgufBuilder metadata;
    metadata.claimed_metadata = claim;
    EXPECT_THAT(error_of(metadata.build()), HasSubstr("metadata entries, which"));
    for (const uint32_t element : {0u, 8u, 9u, 12u}) {
      Bytes array;
      append(array, element);
      append(array, static_cast<uint64_t>(claim));
      EXPECT_THAT(error_of(GgufBuilder().raw("list", 9, array).build()),
                  AllOf(HasSubstr("'list'"), HasSubstr("elements where")));
    }
    Bytes text;
    append(text, static_cast<uint64_t>(claim));
    EXPECT_THAT(error_of(GgufBuilder().raw("text", 8, text).build()),
                AllOf(HasSubstr("'text'"), HasSubstr("bytes where")));
  }
}

TEST(GgufCorrupted, MetadataTypesAndNesting) {
  EXPECT_THAT(error_of(GgufBuilder().value<uint32_t>("k", 13, 0).build()),
              AllOf(HasSubstr("'k'"), HasSubstr("unknown value type 13")));
  EXPECT_THAT(error_of(GgufBuilder().value<uint8_t>("k", 7, 2).build()), HasSubstr("boolean"));
  EXPECT_THAT(error_of(GgufBuilder().u32("k", 1).u32("k", 2).build()),
              HasSubstr("'k' appears twice"));
  Bytes deep;
  for (int i = 0; i < 100000; ++i) {
    append<uint32_t>(deep, 9);
    append<uint64_t>(deep, 1);
  }
  EXPECT_THAT(error_of(GgufBuilder().raw("deep", 9, deep).build()), HasSubstr("nests arrays"));
}

TEST(GgufCorrupted, Alignment) {
  for (const uint32_t alignment : {0u, 24u, 0x80000000u})
    EXPECT_THAT(error_of(GgufBuilder().u32("general.alignment", alignment).build()),
                HasSubstr("power of two"));
  EXPECT_THAT(error_of(GgufBuilder().text("general.alignment", "32").build()),
              HasSubstr("power of two"));
}

TEST(GgufCorrupted, TensorShapes) {
  const auto shaped = [](std::vector<uint64_t> dims, uint32_t type = kF32Number) {
    return error_of(GgufBuilder().tensor("w", std::move(dims), type, floats(8)).build());
  };
  EXPECT_THAT(shaped({}), AllOf(HasSubstr("'w'"), HasSubstr("0 dimensions")));
  EXPECT_THAT(shaped({1, 1, 1, 1, 1}), HasSubstr("5 dimensions"));
  EXPECT_THAT(shaped({0, 4}), HasSubstr("dimension of 0"));
  EXPECT_THAT(shaped({uint64_t{1} << 63}), HasSubstr("'w'"));
  EXPECT_THAT(shaped({uint64_t{1} << 32, uint64_t{1} << 32}), HasSubstr("absurd shape"));
  EXPECT_THAT(shaped({uint64_t{1} << 61, 1}), HasSubstr("truncated"));
  EXPECT_THAT(shaped({8, 1000}), AllOf(HasSubstr("'w'"), HasSubstr("truncated")));
  EXPECT_THAT(shaped({33, 2}, kQ8_0Number), AllOf(HasSubstr("'w'"), HasSubstr("Q8_0")));
  EXPECT_THAT(shaped({8}, 4), HasSubstr("unknown ggml type 4"));
}

TEST(GgufCorrupted, OffsetsNamesAndOverlap) {
  const Bytes x = floats(16);
  EXPECT_THAT(error_of(GgufBuilder().tensor("w", {8}, 0, x, 4).build()),
              AllOf(HasSubstr("'w'"), HasSubstr("multiple of the alignment")));
  EXPECT_THAT(error_of(GgufBuilder().tensor("w", {8}, 0, x, int64_t{1} << 62).build()),
              AllOf(HasSubstr("'w'"), HasSubstr("truncated")));
  EXPECT_THAT(error_of(GgufBuilder().tensor("w", {8}, 0, x).tensor("w", {8}, 0, x).build()),
              HasSubstr("'w' appears twice"));
  EXPECT_THAT(error_of(GgufBuilder().tensor("v", {16}, 0, x).tensor("w", {16}, 0, x, 32).build()),
              AllOf(HasSubstr("'v'"), HasSubstr("'w'"), HasSubstr("overlap")));
}

TEST(GgufCorrupted, HostileNamesAreMadePrintable) {
  const std::string name = std::string("evil\x1b[2J\xff") + std::string(5000, 'x');
  const std::string message = error_of(GgufBuilder().tensor(name, {0}, 0, {}).build());
  EXPECT_THAT(message, HasSubstr("evil?[2J?xxx"));
  EXPECT_LT(message.size(), 300u);
}

TEST(GgufCorrupted, UnreadableTypesOpenButAreRefusedByName) {
  const Bytes file = testing::small_gguf();
  const auto gguf = Gguf::parse(file);
  ASSERT_TRUE(gguf);
  const TensorView& t = gguf->tensors.back();
  EXPECT_EQ(name(t.dtype), "IQ4_XS");
  std::vector<float> out(256);
  const auto read = dequantise_row(t, 0, out.data());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message,
              AllOf(HasSubstr("'iq4xs'"), HasSubstr("IQ4_XS"), HasSubstr("Q8_0")));
}

RC_GTEST_PROP(GgufProperty, WhatTheBuilderWritesReadsBack, ()) {
  const auto texts =
      *rc::gen::container<std::vector<std::string>>(rc::gen::arbitrary<std::string>());
  const auto numbers = *rc::gen::arbitrary<std::vector<int64_t>>();
  GgufBuilder b;
  b.alignment = uint64_t{8} << *rc::gen::inRange(0, 5);
  b.u32("general.alignment", static_cast<uint32_t>(b.alignment)).texts("texts", texts);
  Bytes array;
  append<uint32_t>(array, 11);
  append<uint64_t>(array, numbers.size());
  for (const int64_t x : numbers) append(array, x);
  b.raw("numbers", 9, array);
  std::vector<std::vector<uint64_t>> shapes;
  std::vector<Bytes> data;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    shapes.push_back(*rc::gen::container<std::vector<uint64_t>>(
        static_cast<size_t>(*rc::gen::inRange(1, 5)), rc::gen::inRange<uint64_t>(1, 5)));
    uint64_t n = 1;
    for (const uint64_t d : shapes.back()) n *= d;
    data.push_back(*rc::gen::container<Bytes>(2 * n, rc::gen::arbitrary<uint8_t>()));
    b.tensor("t" + std::to_string(i), shapes.back(), 1, data.back());
  }
  const Bytes file = b.build();
  const auto gguf = Gguf::parse(file);
  RC_ASSERT(gguf.has_value());
  const auto& got = gguf->find("texts")->array()->strings;
  RC_ASSERT(std::vector<std::string>(got.begin(), got.end()) == texts);
  const GgufArray* list = gguf->find("numbers")->array();
  RC_ASSERT(list->count == numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) RC_ASSERT(list->number(i).integer() == numbers[i]);
  RC_ASSERT(gguf->tensors.size() == data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    const TensorView& t = gguf->tensors[i];
    RC_ASSERT(std::vector<uint64_t>(t.shape.rbegin(), t.shape.rend()) == shapes[i]);
    RC_ASSERT(Bytes(t.stored.begin(), t.stored.end()) == data[i]);
  }
}

}  // namespace
}  // namespace gridless::weights
