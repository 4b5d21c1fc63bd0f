#include "gridless/weights/summary.h"

#include <gmock/gmock.h>

#include "gridless/weights/gguf.h"
#include "tests/weights/builders.h"

namespace gridless::weights {
namespace {

TEST(Summary, CountsFormatsLargestFirstAndGroupsLayers) {
  testing::GgufBuilder b;
  for (const char* n : {"model.layers.0.w.weight", "model.layers.11.w.weight", "model.layersx.w"})
    b.tensor(n, {32, 2}, 8, testing::Bytes(68));
  b.tensor("model.layers.2.w.weight", {3}, 0, testing::Bytes(12));
  const testing::Bytes file = b.build();
  const auto gguf = Gguf::parse(file);
  ASSERT_TRUE(gguf) << gguf.error().message;
  const Summary s = summarise(gguf->tensors);
  EXPECT_EQ(s.elements, 3u * 64 + 3);
  EXPECT_EQ(s.bytes, 3u * 68 + 12);
  ASSERT_EQ(s.formats.size(), 2u);
  EXPECT_EQ(s.formats[0].dtype, Dtype::kQ8_0);
  EXPECT_EQ(s.formats[0].tensors, 3);
  EXPECT_EQ(s.formats[1].bytes, 12u);
  ASSERT_EQ(s.kinds.size(), 3u);  // another type or shape is another kind
  int64_t layers = 0;
  for (const TensorKind& k : s.kinds)
    if (k.name == "model.layers.*.w.weight" && k.dtype == Dtype::kQ8_0) layers = k.tensors;
  EXPECT_EQ(layers, 2);
}

TEST(Summary, OnlyWholePartsOfANameAreNumbers) {
  EXPECT_EQ(without_numbers("layers.12.experts.3.w1"), "layers.*.experts.*.w1");
  EXPECT_EQ(without_numbers("7"), "*");
  EXPECT_EQ(without_numbers("a..1x.b2"), "a..1x.b2");
  EXPECT_EQ(without_numbers(""), "");
}

TEST(StreamFormat, IsExactOrBf16) {
  EXPECT_EQ(stream_format(Dtype::kBF16), "bf16");
  EXPECT_EQ(stream_format(Dtype::kQ8_0), "q8");
  EXPECT_EQ(stream_format(Dtype::kQ4_1), "q4");
  EXPECT_EQ(stream_format(Dtype::kQ6_K), "bf16");
  EXPECT_EQ(stream_format(Dtype::kI64), "");
  for (int i = 0; i <= static_cast<int>(Dtype::kMXFP4); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (!info(dtype).readable) {
      EXPECT_EQ(stream_format(dtype), "") << name(dtype);
    }
  }
}

}  // namespace
}  // namespace gridless::weights
