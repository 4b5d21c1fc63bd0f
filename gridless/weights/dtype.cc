#include "gridless/weights/dtype.h"

#include <array>

#include "gridless/base/check.h"

namespace gridless::weights {
namespace {

using enum Dtype;

// Rows in the order of the enum. Sizes of the ggml types are those of its block structs: scales
// first, then the codes, e.g. Q4_1 = f16 scale + f16 minimum + 16 bytes of two codes each.
constexpr std::array kTypes = {
    DtypeInfo{kF64, "F64", 1, 8, 28, true, true},
    DtypeInfo{kF32, "F32", 1, 4, 0, true, true},
    DtypeInfo{kF16, "F16", 1, 2, 1, true, true},
    DtypeInfo{kBF16, "BF16", 1, 2, 30, true, true},
    DtypeInfo{kI64, "I64", 1, 8, 27, true, true},
    DtypeInfo{kI32, "I32", 1, 4, 26, true, true},
    DtypeInfo{kI16, "I16", 1, 2, 25, true, true},
    DtypeInfo{kI8, "I8", 1, 1, 24, true, true},
    DtypeInfo{kU64, "U64", 1, 8, -1, true, true},
    DtypeInfo{kU32, "U32", 1, 4, -1, true, true},
    DtypeInfo{kU16, "U16", 1, 2, -1, true, true},
    DtypeInfo{kU8, "U8", 1, 1, -1, true, true},
    DtypeInfo{kBool, "BOOL", 1, 1, -1, true, true},
    DtypeInfo{kF8E4M3, "F8_E4M3", 1, 1, -1, true, true},
    DtypeInfo{kF8E5M2, "F8_E5M2", 1, 1, -1, true, true},
    DtypeInfo{kF8E8M0, "F8_E8M0", 1, 1, -1, true, true},
    DtypeInfo{kF4, "F4", 2, 1, -1, true, true},
    DtypeInfo{kQ4_0, "Q4_0", 32, 2 + 16, 2, false, true},
    DtypeInfo{kQ4_1, "Q4_1", 32, 4 + 16, 3, false, true},
    DtypeInfo{kQ5_0, "Q5_0", 32, 2 + 4 + 16, 6, false, true},
    DtypeInfo{kQ5_1, "Q5_1", 32, 4 + 4 + 16, 7, false, true},
    DtypeInfo{kQ8_0, "Q8_0", 32, 2 + 32, 8, false, true},
    DtypeInfo{kQ2_K, "Q2_K", 256, 4 + 16 + 64, 10, false, false},
    DtypeInfo{kQ3_K, "Q3_K", 256, 2 + 64 + 32 + 12, 11, false, false},
    DtypeInfo{kQ4_K, "Q4_K", 256, 4 + 12 + 128, 12, false, true},
    DtypeInfo{kQ5_K, "Q5_K", 256, 4 + 12 + 32 + 128, 13, false, true},
    DtypeInfo{kQ6_K, "Q6_K", 256, 128 + 64 + 16 + 2, 14, false, true},
    DtypeInfo{kQ8_K, "Q8_K", 256, 4 + 256 + 32, 15, false, false},
    DtypeInfo{kIQ2_XXS, "IQ2_XXS", 256, 2 + 64, 16, false, false},
    DtypeInfo{kIQ2_XS, "IQ2_XS", 256, 2 + 64 + 8, 17, false, false},
    DtypeInfo{kIQ3_XXS, "IQ3_XXS", 256, 2 + 64 + 32, 18, false, false},
    DtypeInfo{kIQ1_S, "IQ1_S", 256, 2 + 32 + 16, 19, false, false},
    DtypeInfo{kIQ4_NL, "IQ4_NL", 32, 2 + 16, 20, false, false},
    DtypeInfo{kIQ3_S, "IQ3_S", 256, 2 + 64 + 32 + 8 + 4, 21, false, false},
    DtypeInfo{kIQ2_S, "IQ2_S", 256, 2 + 64 + 16, 22, false, false},
    DtypeInfo{kIQ4_XS, "IQ4_XS", 256, 4 + 128 + 4, 23, false, false},
    DtypeInfo{kIQ1_M, "IQ1_M", 256, 32 + 16 + 8, 29, false, false},
    DtypeInfo{kTQ1_0, "TQ1_0", 256, 2 + 52, 34, false, false},
    DtypeInfo{kTQ2_0, "TQ2_0", 256, 2 + 64, 35, false, false},
    DtypeInfo{kMXFP4, "MXFP4", 32, 1 + 16, 39, false, true},
};

constexpr bool in_enum_order() {
  for (size_t i = 0; i < kTypes.size(); ++i)
    if (static_cast<size_t>(kTypes[i].dtype) != i) return false;
  return kTypes.size() == static_cast<size_t>(kMXFP4) + 1;
}
static_assert(in_enum_order());

}  // namespace

const DtypeInfo& info(Dtype dtype) {
  const auto i = static_cast<size_t>(dtype);
  GRIDLESS_CHECK(i < kTypes.size(), "dtype {}", i);
  return kTypes[i];
}

std::optional<Dtype> dtype_of_ggml(uint32_t number) {
  for (const DtypeInfo& t : kTypes)
    if (t.ggml >= 0 && static_cast<uint32_t>(t.ggml) == number) return t.dtype;
  return std::nullopt;
}

std::optional<Dtype> dtype_of_safetensors(std::string_view name) {
  for (const DtypeInfo& t : kTypes)
    if (t.safetensors && t.name == name) return t.dtype;
  return std::nullopt;
}

std::string_view stream_format(Dtype dtype) {
  switch (dtype) {
    case kF64:
    case kF32:
    case kF16:
    case kBF16:
    case kF8E5M2:
    case kQ5_1:
    case kQ4_K:
    case kQ5_K:
    case kQ6_K:
      return "bf16";
    case kF8E4M3:
      return "fp8";
    case kF4:
    case kMXFP4:
      return "mxfp4";
    case kQ4_0:
    case kQ4_1:
      return "q4";
    case kQ5_0:  // five signed bits and an f16 scale per 32: int8 codes hold them
    case kQ8_0:
      return "q8";
    default:
      return "";
  }
}

std::optional<uint64_t> bytes_of(Dtype dtype, uint64_t elements) {
  const DtypeInfo& t = info(dtype);
  if (elements % t.block_elements != 0) return std::nullopt;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements / t.block_elements, uint64_t{t.block_bytes}, &bytes))
    return std::nullopt;
  return bytes;
}

}  // namespace gridless::weights
