#include "gridless/emulate/buffer.h"

#include <algorithm>
#include <cstring>

#include "gridless/base/check.h"
#include "gridless/emulate/codec.h"

namespace gridless::emulate {

void Buffer::allocate() {
  const int64_t n = type.num_elements();
  GRIDLESS_CHECK(n >= 0, "{} of {}", name, type.str());
  if (is_semaphore()) {
    semaphores.assign(static_cast<size_t>(n), {});
    return;
  }
  owned.resize(static_cast<size_t>(storage_bytes(type.elem(), n)));
  data = owned;
  poison();
}

void Buffer::poison() {
  written = false;
  if (is_semaphore() || absent) return;
  const Elem e = type.elem();
  if (contents) std::fill_n(contents.get(), type.num_elements(), Content::kGarbage);
  const uint32_t pattern = fill_bits(e, fill);
  // One period of the pattern, then copies of it.
  std::byte period[4];
  const int bits = storage_bits(e);
  for (int i = 0; i < 32 / bits || i == 0; ++i) set_bits(period, i, bits > 32 ? 32 : bits, pattern);
  size_t at = 0;
  for (; at + 4 <= data.size(); at += 4) std::memcpy(data.data() + at, period, 4);
  std::memcpy(data.data() + at, period, data.size() - at);
}

void Buffer::track(Content all) { contents = emulate::track(type.num_elements(), all); }

std::shared_ptr<Content[]> track(int64_t n, Content all) {
  auto contents = std::make_shared<Content[]>(static_cast<size_t>(n));
  std::fill_n(contents.get(), n, all);
  return contents;
}

uint32_t get_bits(const std::byte* data, int64_t index, int bits) {
  switch (bits) {
    case 32: {
      uint32_t v;
      std::memcpy(&v, data + index * 4, 4);
      return v;
    }
    case 16: {
      uint16_t v;
      std::memcpy(&v, data + index * 2, 2);
      return v;
    }
    case 8:
      return static_cast<uint32_t>(data[index]);
    case 4:
      return static_cast<uint32_t>(data[index / 2]) >> (index % 2 * 4) & 0xfu;
    case 2:
      return static_cast<uint32_t>(data[index / 4]) >> (index % 4 * 2) & 0x3u;
    default:
      break;
  }
  GRIDLESS_CHECK(false, "{} bits", bits);
}

void set_bits(std::byte* data, int64_t index, int bits, uint32_t value) {
  switch (bits) {
    case 32:
      std::memcpy(data + index * 4, &value, 4);
      return;
    case 16: {
      const auto v = static_cast<uint16_t>(value);
      std::memcpy(data + index * 2, &v, 2);
      return;
    }
    case 8:
      data[index] = static_cast<std::byte>(value);
      return;
    case 4:
    case 2: {
      const int per_byte = 8 / bits;
      const auto shift = static_cast<int>(index % per_byte) * bits;
      const uint32_t mask = ((1u << bits) - 1u) << shift;
      std::byte& b = data[index / per_byte];
      b = static_cast<std::byte>((static_cast<uint32_t>(b) & ~mask) | (value << shift & mask));
      return;
    }
    default:
      break;
  }
  GRIDLESS_CHECK(false, "{} bits", bits);
}

}  // namespace gridless::emulate
