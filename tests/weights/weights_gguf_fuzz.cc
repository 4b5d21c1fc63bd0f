// Any bytes as a GGUF file: parsed, renamed, and every readable row read, without crash or overrun.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "gridless/base/check.h"
#include "gridless/weights/dequantise.h"
#include "gridless/weights/gguf_names.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gridless;
  using namespace gridless::weights;
  auto gguf = Gguf::parse({data, size});
  if (!gguf) {
    GRIDLESS_CHECK(!gguf.error().message.empty());
    return 0;
  }
  for (const GgufEntry& entry : gguf->metadata)
    if (const GgufArray* array = entry.value.array(); array && !array->numbers.empty())
      GRIDLESS_CHECK(array->number(array->count - 1).value.index() < 4);
  if (!adopt_hugging_face_layout(*gguf)) return 0;
  GRIDLESS_CHECK(config_of(*gguf).is_object());
  std::vector<float> out;
  for (const TensorView& t : gguf->tensors) {
    GRIDLESS_CHECK(static_cast<uint64_t>(t.rows() * t.row_bytes()) == t.stored.size());
    if (!info(t.dtype).readable) continue;
    out.resize(static_cast<size_t>(t.row_elements()));
    for (int64_t r = 0; r < t.rows(); ++r) GRIDLESS_CHECK(dequantise_row(t, r, out.data()));
  }
  return 0;
}
