// Random data and comparisons of the kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gridless/cpu/kernels.h"

namespace gridless::cpu {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  float normal() { return normal_(engine_); }
  uint32_t word() { return static_cast<uint32_t>(engine_()); }
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }

 private:
  std::mt19937 engine_;
  std::normal_distribution<float> normal_;
};

// The instruction sets of this machine that have kernels of their own, without the reference.
inline std::vector<Isa> vector_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni}) {
    if (isa <= detected_isa()) isas.push_back(isa);
  }
  return isas;
}

template <class T>
testing::AssertionResult same_bits(const std::vector<T>& expected, const std::vector<T>& actual) {
  if (expected.size() != actual.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&expected[i], &actual[i], sizeof(T)) != 0) {
      return testing::AssertionFailure()
             << "element " << i << ": expected " << expected[i] << ", got " << actual[i];
    }
  }
  return testing::AssertionSuccess();
}

// Row `row` of a panel-major array [n, rows, 128].
template <class T>
std::vector<T> take_row(const std::vector<T>& all, int64_t row, int64_t rows) {
  std::vector<T> one;
  const int64_t panels = static_cast<int64_t>(all.size()) / (rows * kLanes);
  for (int64_t p = 0; p < panels; ++p) {
    const auto begin = all.begin() + (p * rows + row) * kLanes;
    one.insert(one.end(), begin, begin + kLanes);
  }
  return one;
}

}  // namespace gridless::cpu
