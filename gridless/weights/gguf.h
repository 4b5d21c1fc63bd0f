// GGUF, the single-file format of llama.cpp: versions 2 and 3, little-endian.
//
//   "GGUF" u32 version, u64 tensor count, u64 metadata count
//   metadata:  string key, u32 type, value          (string = u64 length + bytes)
//   tensors:   string name, u32 rank, u64 dims[rank] (fastest first), u32 type, u64 offset
//   padding to `general.alignment` (default 32), then the data; offsets count from there.
//
// parse() reads the header and checks all of it; it copies no data, and allocates no more than the
// bytes that are really there justify, whatever the counts in the header say. Everything in the
// result points into `bytes`, which must outlive it. Errors name the key or tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "gridless/weights/tensor.h"

namespace gridless::weights {

enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

struct GgufValue;

// An array of numbers (kept as the file's bytes), of strings, or of arrays.
struct GgufArray {
  GgufType element = GgufType::kU8;
  uint64_t count = 0;
  ByteView numbers;                       // element is a number or kBool
  std::vector<std::string_view> strings;  // element is kString
  std::vector<GgufValue> arrays;          // element is kArray

  GgufValue number(uint64_t i) const;  // i < count, for arrays of numbers and kBool
};

struct GgufValue {
  GgufType type = GgufType::kU8;
  // u8..u64 as uint64_t, i8..i64 as int64_t, f32 and f64 as double.
  std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray> value;

  // The value as asked for, none where the type does not fit (an integer is also a number).
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  std::optional<bool> boolean() const;
  std::optional<std::string_view> string() const;
  const GgufArray* array() const;
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

struct Gguf {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t data_offset = 0;         // of the first tensor byte in the file
  std::vector<GgufEntry> metadata;  // in file order
  ByteView metadata_bytes;          // where they stand in the file
  std::vector<TensorView> tensors;  // in file order; names as stored, shapes row-major

  static Result<Gguf> parse(ByteView bytes);

  const GgufValue* find(std::string_view key) const;

  // A file with the same metadata and no tensors.
  std::vector<uint8_t> without_tensors() const;
};

}  // namespace gridless::weights
