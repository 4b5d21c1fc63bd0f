// Refs of narrower elements than their buffer's, reshaped and sliced: against the position of each
// element worked out by hand.
#include "gridless/emulate/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "gridless/emulate/region.h"

namespace gridless::emulate {
namespace {

// i32[2,4,8]. Half h of the word at row r, column c holds 1000 * h + its number in the buffer.
class Words : public testing::Test {
 protected:
  Words() {
    buffer.type = Type::memref({2, 4, 8}, Elem::kI32, ir::Space::kVmem);
    buffer.allocate();
    for (int32_t k = 0; k < 64; ++k) {
      const int32_t word = (1000 + k) << 16 | k;
      std::memcpy(buffer.data.data() + k * 4, &word, 4);
    }
  }

  View halves() {  // i16[2,8,8]
    View out;
    EXPECT_EQ(bitcast(whole(buffer), Elem::kI16, {2, 8, 8}, out), "");
    return out;
  }
  static View reshaped(const View& v, const Shape& shape) {
    View out;
    EXPECT_EQ(reshape(v, shape, out), "") << ir::shape_str(shape);
    return out;
  }
  static int64_t at(const View& v, const Shape& index) { return read_scalar(v, index).i; }
  // What row p (of 16 rows of halves), column c holds.
  static int64_t expected(int64_t p, int64_t c) { return p % 2 * 1000 + p / 2 * 8 + c; }

  Buffer buffer;
};

TEST_F(Words, NarrowedRowsSplit) {
  const View v = reshaped(halves(), {2, 2, 4, 8});
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t r = 0; r < 4; ++r)
        for (int64_t c = 0; c < 8; ++c)
          EXPECT_EQ(at(v, {a, b, r, c}), expected(a * 8 + b * 4 + r, c));
}

TEST_F(Words, NarrowedRowsJoinWithWhatLiesAroundThem) {
  const View v = reshaped(halves(), {16, 8});
  const View s = slice(v, {7, 2}, {3, 4});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(at(s, {r, c}), expected(7 + r, 2 + c));
  write_scalar(s, {1, 1}, Scalar{.elem = Elem::kI16, .i = -5});
  EXPECT_EQ(at(halves(), {1, 0, 3}), -5);
  EXPECT_EQ(at(halves(), {1, 1, 3}), expected(9, 3));  // the other half of the word
}

TEST_F(Words, ColumnsSplitBesideNarrowedRows) {
  const View v = reshaped(halves(), {2, 8, 2, 4});
  EXPECT_EQ(at(v, {1, 3, 1, 2}), expected(8 + 3, 6));
}

TEST_F(Words, RowsAndColumnsDoNotJoin) {
  View out;
  EXPECT_THAT(reshape(halves(), {2, 64}, out), testing::HasSubstr("without a copy"));
}

TEST_F(Words, BackToWords) {
  View words;
  ASSERT_EQ(bitcast(slice(reshaped(halves(), {16, 8}), {10, 0}, {4, 8}), Elem::kI32, {2, 8}, words),
            "");
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t c = 0; c < 8; ++c) {
      const int64_t k = (5 + r) * 8 + c;
      EXPECT_EQ(at(words, {r, c}), (1000 + k) << 16 | k);
    }
  EXPECT_TRUE(words.plain());
  View odd;
  EXPECT_NE(bitcast(slice(reshaped(halves(), {16, 8}), {1, 0}, {4, 8}), Elem::kI32, {2, 8}, odd),
            "");
}

TEST_F(Words, BytesOfHalves) {
  View bytes;
  ASSERT_EQ(bitcast(reshaped(halves(), {16, 8}), Elem::kI8, {32, 8}, bytes), "");
  for (int64_t r = 0; r < 32; ++r) {
    const int64_t half = expected(r / 2, 3);
    EXPECT_EQ(at(bytes, {r, 3}) & 0xff, r % 2 ? half >> 8 : half & 0xff);
  }
}

// The footprint of a block: the words that its elements lie in, no more.
TEST_F(Words, RegionsHoldTheWordsOfABlock) {
  const View v = reshaped(halves(), {2, 4, 2, 8});
  const View s = slice(v, {0, 1, 1, 2}, {2, 2, 1, 3});
  std::set<int64_t> words;
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t b = 1; b < 3; ++b)
      for (int64_t c = 2; c < 5; ++c) words.insert((a * 8 + b * 2 + 1) / 2 * 8 + c);
  std::set<int64_t> region;
  region_of(s).for_each_run([&](int64_t first, int64_t count, int64_t stride) {
    for (int64_t k = 0; k < count; ++k) region.insert(first + k * stride);
  });
  EXPECT_EQ(region, words);
}

}  // namespace
}  // namespace gridless::emulate
