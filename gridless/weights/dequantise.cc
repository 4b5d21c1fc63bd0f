#include "gridless/weights/dequantise.h"

#include <bit>
#include <cstring>

#include "gridless/base/check.h"
#include "gridless/base/float8.h"
#include "gridless/base/numerics.h"
#include "gridless/weights/dequantise_blocks.h"

namespace gridless::weights {
namespace {

template <typename T>
void plain(const uint8_t* bytes, int64_t elements, float* out) {
  for (int64_t i = 0; i < elements; ++i) {
    T x;
    std::memcpy(&x, bytes + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if constexpr (std::is_arithmetic_v<T>)
      out[i] = static_cast<float>(x);
    else
      out[i] = to_f32(x);
  }
}

// Two codes per byte, the low nibble first.
void nibbles(const uint8_t* bytes, int64_t elements, float* out) {
  for (int64_t i = 0; i < elements; ++i)
    out[i] = to_f32(f4e2m1{static_cast<uint8_t>(bytes[i / 2] >> (i % 2 * 4) & 15)});
}

template <void (*Block)(const uint8_t*, float*)>
void blocks(const DtypeInfo& t, const uint8_t* bytes, int64_t elements, float* out) {
  for (int64_t i = 0; i < elements; i += t.block_elements, bytes += t.block_bytes)
    Block(bytes, out + i);
}

}  // namespace

void dequantise(Dtype dtype, const uint8_t* bytes, int64_t elements, float* out) {
  const DtypeInfo& t = info(dtype);
  switch (dtype) {
    case Dtype::kF64:
      return plain<double>(bytes, elements, out);
    case Dtype::kF32:
      return plain<float>(bytes, elements, out);
    case Dtype::kF16:
      return plain<f16>(bytes, elements, out);
    case Dtype::kBF16:
      return plain<bf16>(bytes, elements, out);
    case Dtype::kI64:
      return plain<int64_t>(bytes, elements, out);
    case Dtype::kI32:
      return plain<int32_t>(bytes, elements, out);
    case Dtype::kI16:
      return plain<int16_t>(bytes, elements, out);
    case Dtype::kI8:
      return plain<int8_t>(bytes, elements, out);
    case Dtype::kU64:
      return plain<uint64_t>(bytes, elements, out);
    case Dtype::kU32:
      return plain<uint32_t>(bytes, elements, out);
    case Dtype::kU16:
      return plain<uint16_t>(bytes, elements, out);
    case Dtype::kU8:
    case Dtype::kBool:
      return plain<uint8_t>(bytes, elements, out);
    case Dtype::kF8E4M3:
      return plain<f8e4m3>(bytes, elements, out);
    case Dtype::kF8E5M2:
      return plain<f8e5m2>(bytes, elements, out);
    case Dtype::kF8E8M0:
      return plain<f8e8m0>(bytes, elements, out);
    case Dtype::kF4:
      return nibbles(bytes, elements, out);
    case Dtype::kQ4_0:
      return blocks<block_q4_0>(t, bytes, elements, out);
    case Dtype::kQ4_1:
      return blocks<block_q4_1>(t, bytes, elements, out);
    case Dtype::kQ5_0:
      return blocks<block_q5_0>(t, bytes, elements, out);
    case Dtype::kQ5_1:
      return blocks<block_q5_1>(t, bytes, elements, out);
    case Dtype::kQ8_0:
      return blocks<block_q8_0>(t, bytes, elements, out);
    case Dtype::kQ4_K:
      return blocks<block_q4_k>(t, bytes, elements, out);
    case Dtype::kQ5_K:
      return blocks<block_q5_k>(t, bytes, elements, out);
    case Dtype::kQ6_K:
      return blocks<block_q6_k>(t, bytes, elements, out);
    case Dtype::kMXFP4:
      return blocks<block_mxfp4>(t, bytes, elements, out);
    default:
      break;
  }
  GRIDLESS_CHECK(false, "{} is not readable", t.name);
}

Result<void> check_readable(const TensorView& view) {
  if (info(view.dtype).readable) return {};
  return input_error(
      "tensor '{}' is stored as {}, which cannot be read; convert the model to Q8_0, Q4_0, Q4_1, "
      "F16 "
      "or BF16",
      printable(view.name), name(view.dtype));
}

Result<void> dequantise_row(const TensorView& view, int64_t r, float* out) {
  TRY_VOID(check_readable(view));
  dequantise(view.dtype, view.row(r).data(), view.row_elements(), out);
  return {};
}

}  // namespace gridless::weights
