// Checkpoint files made byte by byte for tests: valid by default, and every field can be made to
// lie.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace gridless::weights::testing {

using Bytes = std::vector<uint8_t>;

template <typename T>
void append(Bytes& out, T x) {
  uint8_t raw[sizeof(T)];
  std::memcpy(raw, &x, sizeof raw);
  out.insert(out.end(), raw, raw + sizeof raw);
}

inline void append_text(Bytes& out, std::string_view text) {
  out.insert(out.end(), text.begin(), text.end());
}

// Writes a GGUF file as its specification says, independently of the reader.
class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;
  int64_t claimed_tensors = -1;  // >= 0: what the header says instead of the truth
  int64_t claimed_metadata = -1;
  std::string magic = "GGUF";

  static void string(Bytes& out, std::string_view text) {
    append<uint64_t>(out, text.size());
    append_text(out, text);
  }

  // `type` and the bytes of a value, as they are.
  GgufBuilder& raw(std::string_view key, uint32_t type, const Bytes& value) {
    string(metadata_, key);
    append<uint32_t>(metadata_, type);
    metadata_.insert(metadata_.end(), value.begin(), value.end());
    ++metadata_count_;
    return *this;
  }
  template <typename T>
  GgufBuilder& value(std::string_view key, uint32_t type, T x) {
    Bytes b;
    append(b, x);
    return raw(key, type, b);
  }
  GgufBuilder& u32(std::string_view key, uint32_t x) { return value(key, 4, x); }
  GgufBuilder& f32(std::string_view key, float x) { return value(key, 6, x); }
  GgufBuilder& text(std::string_view key, std::string_view x) {
    Bytes b;
    string(b, x);
    return raw(key, 8, b);
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& list) {
    Bytes b;
    append<uint32_t>(b, 8);
    append<uint64_t>(b, list.size());
    for (const std::string& s : list) string(b, s);
    return raw(key, 9, b);
  }

  // `dims` fastest first, as the file has them. `offset` < 0: the next aligned one.
  GgufBuilder& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type,
                      const Bytes& bytes, int64_t offset = -1) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    string(infos_, name);
    append<uint32_t>(infos_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t d : dims) append(infos_, d);
    append(infos_, type);
    append<uint64_t>(infos_, offset < 0 ? data_.size() : static_cast<uint64_t>(offset));
    data_.insert(data_.end(), bytes.begin(), bytes.end());
    ++tensor_count_;
    return *this;
  }

  Bytes build() const {
    Bytes out;
    append_text(out, magic);
    append(out, version);
    append<uint64_t>(out,
                     claimed_tensors < 0 ? tensor_count_ : static_cast<uint64_t>(claimed_tensors));
    append<uint64_t>(
        out, claimed_metadata < 0 ? metadata_count_ : static_cast<uint64_t>(claimed_metadata));
    out.insert(out.end(), metadata_.begin(), metadata_.end());
    out.insert(out.end(), infos_.begin(), infos_.end());
    if (!data_.empty()) out.resize((out.size() + alignment - 1) / alignment * alignment);
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

 private:
  Bytes metadata_, infos_, data_;
  uint64_t metadata_count_ = 0;
  uint64_t tensor_count_ = 0;
};

// Length, header text, data.
inline Bytes safetensors_file(std::string_view header, size_t data_bytes,
                              int64_t claimed_length = -1) {
  Bytes out;
  append<uint64_t>(out, claimed_length < 0 ? header.size() : static_cast<uint64_t>(claimed_length));
  append_text(out, header);
  for (size_t i = 0; i < data_bytes; ++i) out.push_back(static_cast<uint8_t>(i * 7 + 1));
  return out;
}

// A llama-like GGUF with every readable type and metadata of every kind, about 3 kB.
inline Bytes small_gguf() {
  GgufBuilder b;
  b.text("general.architecture", "llama").u32("general.alignment", 32);
  b.u32("llama.attention.head_count", 2).u32("llama.attention.head_count_kv", 1);
  b.u32("llama.embedding_length", 32).f32("llama.rope.freq_base", 10000);
  b.value<uint8_t>("t.u8", 0, 200)
      .value<int8_t>("t.i8", 1, -100)
      .value<uint16_t>("t.u16", 2, 60000);
  b.value<int16_t>("t.i16", 3, -30000).value<int32_t>("t.i32", 5, -2000000000);
  b.value<uint8_t>("t.bool", 7, 1).value<uint64_t>("t.u64", 10, uint64_t{1} << 40);
  b.value<int64_t>("t.i64", 11, -(int64_t{1} << 40)).value<double>("t.f64", 12, 0.1);
  b.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "", "\xc4\xa0x"});
  Bytes numbers;
  append<uint32_t>(numbers, 5);
  append<uint64_t>(numbers, 3);
  for (const int32_t x : {1, -2, 3}) append(numbers, x);
  b.raw("t.numbers", 9, numbers);
  Bytes nested;
  append<uint32_t>(nested, 9);
  append<uint64_t>(nested, 2);
  for (const uint8_t x : {4, 5}) {
    append<uint32_t>(nested, 0);
    append<uint64_t>(nested, 1);
    append(nested, x);
  }
  b.raw("t.nested", 9, nested);
  const auto bytes = [](size_t n) {
    Bytes out(n);
    for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(i * 31 + 7);
    return out;
  };
  b.tensor("token_embd.weight", {32, 3}, 8, bytes(3 * 34));    // Q8_0
  b.tensor("blk.0.attn_q.weight", {32, 8}, 3, bytes(8 * 20));  // Q4_1
  b.tensor("blk.0.attn_k.weight", {32, 4}, 2, bytes(4 * 18));  // Q4_0
  b.tensor("blk.0.attn_norm.weight", {5}, 0, bytes(20));       // F32
  b.tensor("blk.0.ffn_up.weight", {3, 2}, 1, bytes(12));       // F16
  b.tensor("blk.0.ffn_down.weight", {3, 2}, 30, bytes(12));    // BF16
  b.tensor("q4k", {256}, 12, bytes(144));
  b.tensor("q5k", {256}, 13, bytes(176));
  b.tensor("q6k", {256}, 14, bytes(210));
  b.tensor("iq4xs", {256, 2}, 23, bytes(2 * 136));  // known, not readable
  return b.build();
}

inline Bytes small_safetensors() {
  return safetensors_file(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                          R"("b.weight":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},)"
                          R"("scalar":{"dtype":"I64","shape":[],"data_offsets":[32,40]},)"
                          R"("none":{"dtype":"U8","shape":[0,5],"data_offsets":[40,40]},)"
                          R"("fp8":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[40,43]},)"
                          R"("fp4":{"dtype":"F4","shape":[1,4],"data_offsets":[43,45]},)"
                          R"("__metadata__":{"format":"pt"}})",
                          45);
}

}  // namespace gridless::weights::testing
