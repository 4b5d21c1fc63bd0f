// Values of every readable type against tests/data/gguf (made by the gguf Python package, see
// make.py there) and against closed formulas.
#include "gridless/weights/dequantise.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "gridless/weights/gguf_names.h"
#include "gridless/weights/safetensors.h"
#include "tests/weights/builders.h"

namespace gridless::weights {
namespace {

using ::testing::ElementsAre;

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

class BlockFormats : public ::testing::TestWithParam<Dtype> {};

TEST_P(BlockFormats, EqualTheReferenceDecoderBitForBit) {
  const auto file = MappedFile::open(std::string(GRIDLESS_TEST_DATA) + "/gguf/formats.safetensors");
  ASSERT_TRUE(file);
  const auto st = Safetensors::parse(file->bytes());
  ASSERT_TRUE(st) << st.error().message;
  const std::string type(name(GetParam()));
  const TensorView* blocks = st->find(type + ".blocks");
  const TensorView* values = st->find(type + ".values");
  ASSERT_TRUE(blocks && values);
  const DtypeInfo& t = info(GetParam());
  ASSERT_EQ(blocks->row_elements(), t.block_bytes);
  ASSERT_EQ(values->row_elements(), t.block_elements);
  std::vector<float> got(t.block_elements), want(t.block_elements);
  for (int64_t r = 0; r < blocks->rows(); ++r) {
    dequantise(GetParam(), blocks->row(r).data(), t.block_elements, got.data());
    ASSERT_TRUE(dequantise_row(*values, r, want.data()));
    for (size_t i = 0; i < got.size(); ++i)
      // Zeros may differ in sign (a code of 0 or minus a minimum of 0): equal as numbers.
      ASSERT_TRUE(bits(got[i]) == bits(want[i]) || (got[i] == 0 && want[i] == 0))
          << type << " block " << r << " element " << i << ": " << got[i] << " != " << want[i];
  }
}

INSTANTIATE_TEST_SUITE_P(All, BlockFormats,
                         ::testing::Values(Dtype::kQ4_0, Dtype::kQ4_1, Dtype::kQ5_0, Dtype::kQ5_1,
                                           Dtype::kQ8_0, Dtype::kQ4_K, Dtype::kQ5_K, Dtype::kQ6_K,
                                           Dtype::kMXFP4),
                         [](const auto& p) { return std::string(name(p.param)); });

// The bytes of `values` at an odd address, as safetensors may have them.
template <typename T>
std::vector<float> plain(Dtype dtype, const std::vector<T>& values) {
  testing::Bytes bytes = {0};
  for (const T x : values) testing::append(bytes, x);
  std::vector<float> out(values.size());
  dequantise(dtype, bytes.data() + 1, static_cast<int64_t>(values.size()), out.data());
  return out;
}

TEST(PlainFormats, ConvertAtAnyAddress) {
  EXPECT_THAT(plain<double>(Dtype::kF64, {0.5, 1e-300, 1 + 0x1p-24}),
              ElementsAre(0.5f, 0.0f, 1.0f));
  EXPECT_THAT(plain<float>(Dtype::kF32, {-0.1f}), ElementsAre(-0.1f));
  EXPECT_THAT(plain<uint16_t>(Dtype::kF16, {0x3c00, 0xc001}), ElementsAre(1.0f, -2.001953125f));
  EXPECT_THAT(plain<uint16_t>(Dtype::kBF16, {0x3f80, 0xc000}), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(plain<int64_t>(Dtype::kI64, {-5, (1 << 24) + 1}), ElementsAre(-5.0f, 16777216.0f));
  EXPECT_THAT(plain<int32_t>(Dtype::kI32, {-7}), ElementsAre(-7.0f));
  EXPECT_THAT(plain<int16_t>(Dtype::kI16, {-30000}), ElementsAre(-30000.0f));
  EXPECT_THAT(plain<int8_t>(Dtype::kI8, {-128}), ElementsAre(-128.0f));
  EXPECT_THAT(plain<uint64_t>(Dtype::kU64, {uint64_t{1} << 63}), ElementsAre(0x1p63f));
  EXPECT_THAT(plain<uint32_t>(Dtype::kU32, {0x80000000u}), ElementsAre(0x1p31f));
  EXPECT_THAT(plain<uint16_t>(Dtype::kU16, {65535}), ElementsAre(65535.0f));
  EXPECT_THAT(plain<uint8_t>(Dtype::kU8, {255}), ElementsAre(255.0f));
  EXPECT_THAT(plain<uint8_t>(Dtype::kBool, {0, 1}), ElementsAre(0.0f, 1.0f));
  EXPECT_THAT(plain<uint8_t>(Dtype::kF8E4M3, {0x38, 0xfe}), ElementsAre(1.0f, -448.0f));
  EXPECT_THAT(plain<uint8_t>(Dtype::kF8E5M2, {0x3c, 0xfb}), ElementsAre(1.0f, -57344.0f));
  EXPECT_THAT(plain<uint8_t>(Dtype::kF8E8M0, {127, 130}), ElementsAre(1.0f, 8.0f));
  float four[4];
  const uint8_t nibbles[] = {0x21, 0xf7};
  dequantise(Dtype::kF4, nibbles, 4, four);
  EXPECT_THAT(four, ElementsAre(0.5f, 1.0f, 6.0f, -6.0f));
}

TEST(WrittenByPython, ReadsAsItWasWritten) {
  const auto file = MappedFile::open(std::string(GRIDLESS_TEST_DATA) + "/gguf/written.gguf");
  ASSERT_TRUE(file);
  const auto gguf = Gguf::parse(file->bytes());
  ASSERT_TRUE(gguf) << gguf.error().message;
  EXPECT_EQ(gguf->find("general.name")->string(), "tiny");
  EXPECT_EQ(gguf->find("test.flag")->boolean(), true);
  EXPECT_THAT(gguf->find("test.texts")->array()->strings, ElementsAre("one", "", "drei\xc3\x9f"));
  EXPECT_EQ(gguf->find("test.floats")->array()->number(1).number(), -2.0);
  ASSERT_EQ(gguf->tensors.size(), 4u);
  std::vector<float> row(64);
  for (const TensorView& t : gguf->tensors) {
    ASSERT_EQ(t.row_elements(), 64);
    // The writer took x = i / 16 - 4, which f16, and bf16 up to 8 bits, hold exactly; Q8_0 rounds
    // to half a step of 4 / 127, and its f16 scale is off by 2^-11 of the value at most.
    const float tolerance = t.dtype == Dtype::kQ8_0 ? 4.0f / 127 / 2 + 4.0f / 2048 : 0;
    for (int64_t r = 0; r < t.rows(); ++r) {
      ASSERT_TRUE(dequantise_row(t, r, row.data()));
      for (int64_t i = 0; i < 64; ++i)
        EXPECT_NEAR(row[static_cast<size_t>(i)], static_cast<float>(64 * r + i) / 16 - 4, tolerance)
            << t.name;
    }
  }
}

}  // namespace
}  // namespace gridless::weights
