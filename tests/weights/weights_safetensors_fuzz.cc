// Any bytes as a safetensors file, as an index and as a manifest of images: parsed, and every row
// read.
#include "gridless/base/check.h"
#include "gridless/weights/dequantise.h"
#include "gridless/weights/images.h"
#include "gridless/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gridless;
  using namespace gridless::weights;
  const auto index = parse_safetensors_index({reinterpret_cast<const char*>(data), size});
  GRIDLESS_CHECK(index || !index.error().message.empty());
  const auto images =
      ImageManifest::parse({reinterpret_cast<const char*>(data), size}, "images.json");
  GRIDLESS_CHECK(images ? ImageManifest::parse(images->to_json().dump(), "").has_value()
                        : !images.error().message.empty());
  const auto file = Safetensors::parse({data, size});
  if (!file) {
    GRIDLESS_CHECK(!file.error().message.empty());
    return 0;
  }
  std::vector<float> out;
  for (const TensorView& t : file->tensors) {
    GRIDLESS_CHECK(static_cast<uint64_t>(t.rows() * t.row_bytes()) == t.stored.size());
    if (t.stored.empty()) continue;
    out.resize(static_cast<size_t>(t.row_elements()));
    for (int64_t r = 0; r < t.rows(); ++r) GRIDLESS_CHECK(dequantise_row(t, r, out.data()));
  }
  return 0;
}
