// MXFP4 tensors: every value of the reference data, packed for the stream and back; what is
// refused.
#include "gridless/weights/mxfp4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "gridless/base/float8.h"
#include "gridless/base/mapped_file.h"
#include "gridless/base/numerics.h"
#include "gridless/weights/safetensors.h"
#include "gridless/weights/stream_packer.h"

namespace gridless::weights {
namespace {

using testing::HasSubstr;

class Mxfp4 : public testing::Test {
 protected:
  Mxfp4()
      : data_(
            read_text_file(std::string(GRIDLESS_TEST_DATA) + "/numfmt/mxfp4.safetensors").value()),
        tensors_(Safetensors::parse({reinterpret_cast<const uint8_t*>(data_.data()), data_.size()})
                     .value()) {}

  const TensorView& tensor(const std::string& name) const { return *tensors_.find(name); }
  std::vector<float> wanted(const std::string& name, int64_t row) const {
    const ByteView bytes = tensor(name + ".dequant").row(row);
    std::vector<float> out(bytes.size() / 4);
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }

  std::string data_;
  Safetensors tensors_;
};

TEST_F(Mxfp4, RowsAreTheReferencesValues) {
  for (const std::string name : {"m0", "m1", "m2"}) {
    const TensorView &codes = tensor(name + ".packed"), &scales = tensor(name + ".scale");
    ASSERT_TRUE(check_mxfp4(codes, scales));
    for (int64_t r = 0; r < codes.rows(); ++r) {
      std::vector<float> got(static_cast<size_t>(codes.row_elements() * 2));
      ASSERT_TRUE(dequantise_mxfp4_row(codes, scales, r, got.data()));
      EXPECT_EQ(got, wanted(name, r)) << name << " row " << r;
    }
  }
}

// A slice of whole blocks, by the table of docs/weight_stream.md.
TEST_F(Mxfp4, PanelsHoldCodesAndScalesByInput) {
  const TensorView &codes = tensor("m0.packed"), &scales = tensor("m0.scale");
  const MatrixLayout m = whole_matrix({"w", 16, 192, Format::kMxfp4});
  ASSERT_EQ(m.used_rows(), 192 / 8 + 2);
  MatrixPlan plan{.columns = {{64, 192}}};
  for (int64_t r = 0; r < 16; ++r) plan.rows.push_back({&codes, r, &scales});
  std::vector<uint32_t> words(static_cast<size_t>(m.used_rows() * 128));
  ASSERT_TRUE(pack_matrix(m, m.used_rows(), plan, words));
  for (int64_t r = 0; r < 16; ++r) {
    const std::vector<float> want = wanted("m0", r);
    for (int64_t k = 0; k < 192; ++k) {
      const uint32_t word = words[static_cast<size_t>(k / 8 * 128 + r)];
      const uint32_t four = words[static_cast<size_t>((24 + k / 128) * 128 + r)];
      const float code = to_f32(f4e2m1{static_cast<uint8_t>(word >> (4 * (k % 8)) & 15)});
      const float scale = to_f32(f8e8m0{static_cast<uint8_t>(four >> (8 * (k / 32 % 4)))});
      EXPECT_EQ(code * scale, want[static_cast<size_t>(64 + k)]);
    }
  }
}

TEST_F(Mxfp4, RefusesWhatDoesNotFit) {
  const TensorView &codes = tensor("m0.packed"), &scales = tensor("m0.scale");
  EXPECT_THAT(check_mxfp4(codes, tensor("m1.scale")).error().message, HasSubstr("one scale per"));
  EXPECT_THAT(check_mxfp4(codes, tensor("m0.dequant")).error().message, HasSubstr("F32"));
  const MatrixLayout m = whole_matrix({"w", 1, 64, Format::kMxfp4});
  std::vector<uint32_t> words(static_cast<size_t>(m.used_rows() * 128));
  const auto packed = [&](const MatrixPlan& plan) {
    const auto ok = pack_matrix(m, m.used_rows(), plan, words);
    return ok ? std::string("packed") : ok.error().message;
  };
  EXPECT_EQ(packed({.rows = {{&codes, 0, &scales}}, .columns = {{0, 64}}}), "packed");
  EXPECT_THAT(packed({.rows = {{&codes, 0, &scales}}, .columns = {{16, 32}}}),
              HasSubstr("cut its blocks"));
  EXPECT_THAT(packed({.rows = {{&tensor("m0.x"), 0}}, .columns = {{0, 64}}}),
              HasSubstr("only MXFP4 tensors"));
  for (const uint8_t bad : {0, 255}) {
    std::vector<uint8_t> bytes(16, 127);
    bytes[1] = bad;
    const TensorView wrong{
        .name = "s", .dtype = Dtype::kU8, .shape = {1, 16}, .stored = {bytes.data(), bytes.size()}};
    EXPECT_THAT(packed({.rows = {{&codes, 0, &wrong}}, .columns = {{0, 64}}}),
                HasSubstr("scale 1 of row 0"));
  }
}

// Input k of a transposed matrix is row k of the tensor.
TEST(TransposedPlan, ReadsColumns) {
  std::vector<float> values(40 * 5);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const TensorView t{
      .name = "t",
      .dtype = Dtype::kF32,
      .shape = {40, 5},
      .stored = {reinterpret_cast<const uint8_t*>(values.data()), values.size() * 4}};
  const MatrixLayout m = whole_matrix({"w", 3, 64, Format::kBf16});
  MatrixPlan plan{.columns = {{1, 3}}, .transposed = true};
  for (int64_t k = 0; k < 40; ++k) plan.rows.push_back({&t, 39 - k});
  std::vector<uint32_t> words(static_cast<size_t>(m.used_rows() * 128));
  ASSERT_TRUE(pack_matrix(m, m.used_rows(), plan, words));
  for (int64_t k = 0; k < 64; ++k)
    for (int64_t n = 0; n < 4; ++n) {
      const uint32_t word = words[static_cast<size_t>(k / 2 * 128 + n)];
      const float got = to_f32(bf16{static_cast<uint16_t>(k % 2 ? word >> 16 : word & 0xffff)});
      EXPECT_EQ(got, k < 40 && n < 3 ? static_cast<float>((39 - k) * 5 + 1 + n) : 0) << k << n;
    }
}

}  // namespace
}  // namespace gridless::weights
