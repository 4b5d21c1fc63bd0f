// 128-bit hashes of states. Two states with one hash count as one state: with a million states the
// chance that any two different ones do is below 10^-26.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace gridless::emulate {

struct Hash {
  uint64_t a = 0x243f6a8885a308d3u, b = 0x13198a2e03707344u;

  void mix(uint64_t x) {
    a = (a ^ x) * 0x9e3779b97f4a7c15u;
    a ^= a >> 31;
    b = (b + x) * 0xd6e8feb86659fd93u;
    b ^= b >> 29;
  }
  void mix(const Hash& h) {
    mix(h.a);
    mix(h.b);
  }
  void mix(std::span<const std::byte> bytes) {
    mix(bytes.size());
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      uint64_t x;
      std::memcpy(&x, bytes.data(), 8);
      mix(x);
    }
    uint64_t x = 0;
    if (!bytes.empty()) std::memcpy(&x, bytes.data(), bytes.size());
    mix(x);
  }
  // For sets: the order of additions does not matter.
  void add(const Hash& h) {
    a += h.a;
    b += h.b;
  }
  bool operator==(const Hash&) const = default;
};

struct HashOfHash {
  size_t operator()(const Hash& h) const { return static_cast<size_t>(h.a ^ h.b << 1); }
};

}  // namespace gridless::emulate
