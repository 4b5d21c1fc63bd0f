// The element types of checkpoint files: those of safetensors and those of GGUF, in one list.
//
// A type is a block of `block_elements` consecutive elements of a row in `block_bytes` bytes; plain
// types have blocks of one element. "Readable" means that dequantise.h turns it into floats,
// exactly where float32 can hold the value. The others are known by name and size, so that a file
// that holds them can be opened and inspected, and refused by name when somebody wants to run it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gridless::weights {

enum class Dtype : uint8_t {
  // Plain types.
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF4,
  // GGUF block types.
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ3_XXS,
  kIQ1_S,
  kIQ4_NL,
  kIQ3_S,
  kIQ2_S,
  kIQ4_XS,
  kIQ1_M,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
};

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;  // as safetensors or ggml spell it
  uint32_t block_elements;
  uint32_t block_bytes;
  int ggml;          // the number in a GGUF file, -1 where GGUF does not have it
  bool safetensors;  // whether safetensors has it
  bool readable;
};

const DtypeInfo& info(Dtype dtype);
inline std::string_view name(Dtype dtype) { return info(dtype).name; }

std::optional<Dtype> dtype_of_ggml(uint32_t number);
std::optional<Dtype> dtype_of_safetensors(std::string_view name);

// The format of the weight stream in which a matrix of this type runs: "bf16", "q8" (int8 and a
// scale per 32), "q4" (4 bits, scale and minimum per 32), "fp8" or "mxfp4" where that holds the
// file's values exactly, else "bf16", rounded. Empty for types that are not readable and for
// integers.
std::string_view stream_format(Dtype dtype);

// Bytes of `elements` elements; none where they do not fill whole blocks or the count overflows.
std::optional<uint64_t> bytes_of(Dtype dtype, uint64_t elements);

}  // namespace gridless::weights
