// Bytes on the wire: the ABI's offsets, CompileOptionsProto, and the worker's frames.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "gridless/tpu/compile_options.h"
#include "gridless/tpu/pjrt_abi.h"
#include "gridless/tpu/worker_protocol.h"

namespace gridless::tpu {
namespace {

using testing::HasSubstr;

size_t offset_of(abi::Slot slot) {
  return offsetof(abi::Api, slots) + static_cast<size_t>(slot) * sizeof(void*);
}

// Offsets that Reactant's generated bindings give for PJRT API 0.114.
TEST(PjrtAbi, SlotsAreWherePublishedBindingsPutThem) {
  EXPECT_EQ(offset_of(abi::Slot::kExecutableSerialize), 432u);
  EXPECT_EQ(offset_of(abi::Slot::kTopologyCreate), 696u);
  EXPECT_EQ(offset_of(abi::Slot::kCompile), 752u);
  EXPECT_EQ(offset_of(abi::Slot::kExecutableGetCompiledMemoryStats), 808u);
  EXPECT_EQ(offsetof(abi::Api, version), 16u);
}

TEST(PjrtAbi, ArgumentStructsHaveTheSizesOfTheCInterface) {
  EXPECT_EQ(sizeof(abi::TopologyCreateArgs), 0x38u);
  EXPECT_EQ(sizeof(abi::CompileArgs), 0x40u);
  EXPECT_EQ(sizeof(abi::Program), 48u);
  EXPECT_EQ(sizeof(abi::NamedValue), 56u);
  EXPECT_EQ(sizeof(abi::ExecutableGetCompiledMemoryStatsArgs), (3 + 11) * 8u);
}

std::string bytes(std::initializer_list<int> list) {
  std::string out;
  for (const int b : list) out += static_cast<char>(b);
  return out;
}

// Written out by hand from the field numbers of xla/pjrt/proto/compile_options.proto and
// xla/xla_data.proto: tag = field << 3 | wire type.
TEST(CompileOptionsProto, OneDevice) {
  EXPECT_EQ(encode({.device_ids = {0}}),
            bytes({0x1a, 31,  // 3: build options
                   0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,  // 1: -1
                   0x20, 0x01,  // 4: replicas 1
                   0x28, 0x01,  // 5: partitions 1
                   0x30, 0x00,  // 6: SPMD off
                   0x4a, 9,    0x08, 0x01, 0x10, 0x01, 0x1a, 0x03, 0x0a, 0x01, 0x00,  // 9: devices
                   0x98, 0x01, 0x00}));  // 19: Shardy off
}

TEST(CompileOptionsProto, TwoDevicesAndAFlag) {
  EXPECT_EQ(
      encode({.device_ids = {1, 300}, .flags = {{"ab", "cd"}}}),
      bytes({0x1a, 37,   0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
             0xff, 0xff, 0x01, 0x20, 0x01, 0x28, 0x02, 0x30, 0x01, 0x4a,
             15,   0x08, 0x01, 0x10, 0x02, 0x1a, 0x03, 0x0a, 0x01, 0x01,  // partition 0 on device 1
             0x1a, 0x04, 0x0a, 0x02, 0xac, 0x02,  // partition 1 on device 300, a two-byte varint
             0x98, 0x01, 0x01, 0x3a, 10,   0x0a, 2,    'a',  'b',  0x12,
             4,    0x0a, 2,    'c',  'd'}));  // 7: {"ab": "cd"}
}

TEST(Frames, TravelWholeInAnyPieces) {
  const auto whole_frames = [](const std::string& body, uint8_t cut) {
    const std::string frame = encode_frame({{"n", 1}}, body);
    std::string buffer = frame.substr(0, std::min<size_t>(cut, frame.size() - 1));
    const auto early = take_frame(buffer);
    RC_ASSERT(early.has_value() && !early->has_value());
    buffer = frame + "next";
    const auto whole = take_frame(buffer);
    RC_ASSERT(whole.has_value() && whole->has_value());
    RC_ASSERT((*whole)->body == body);
    RC_ASSERT((*whole)->head["n"] == 1);
    RC_ASSERT(buffer == "next");
  };
  EXPECT_TRUE(rc::check("a frame is taken once all of it has arrived", whole_frames));
}

TEST(Frames, NonsenseIsAnError) {
  std::string no_json = bytes({2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) + "xx";
  EXPECT_THAT(take_frame(no_json).error().message, HasSubstr("JSON"));
  std::string absurd = bytes({2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127}) + "{}";
  EXPECT_THAT(take_frame(absurd).error().message, HasSubstr("bytes"));
  EXPECT_FALSE(decode_answer({.head = {{"ok", true}}, .body = ""}));
}

TEST(Frames, AnswersKeepErrorsAndTheirKind) {
  const Result<Compiled> refused = input_error("text with a broken \xff byte");
  std::string buffer = encode_answer(refused, "v");
  auto answer = decode_answer(**take_frame(buffer));
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->compiled);
  EXPECT_EQ(answer->compiled.error().kind, Error::Kind::kInput);
  EXPECT_THAT(answer->compiled.error().message, HasSubstr("text with a broken"));
}

}  // namespace
}  // namespace gridless::tpu
