// Runs a kernel of blocks on the emulator and on the CPU engine: both must give the same bits.
#pragma once

#include <functional>
#include <random>

#include "gridless/base/numerics.h"
#include "gridless/blocks/activations.h"
#include "tests/cpu/run_program.h"

namespace gridless::blocks {

using cpu::Bytes;
using cpu::bytes_of;
using cpu::values_of;
using Floats = std::vector<float>;

inline Floats normals(std::mt19937& random, int64_t n, float scale = 1) {
  std::normal_distribution<float> normal(0, scale);
  Floats out(static_cast<size_t>(n));
  for (float& v : out) v = normal(random);
  return out;
}

inline float rounded(double v) { return to_f32(to_bf16(static_cast<float>(v))); }
inline Floats rounded(Floats v) {
  for (float& x : v) x = rounded(double{x});
  return v;
}

// [rows][width] as panel-major f32 [panels, rows, 128], and back.
inline Floats to_panels(const Floats& v, int64_t rows, int64_t width) {
  Floats out(static_cast<size_t>(panels(width) * rows * kLanes));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i)
      out[static_cast<size_t>((i / kLanes * rows + r) * kLanes + i % kLanes)] =
          v[static_cast<size_t>(r * width + i)];
  return out;
}
inline Floats from_panels(const Floats& v, int64_t rows, int64_t width) {
  Floats out(static_cast<size_t>(rows * width));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i)
      out[static_cast<size_t>(r * width + i)] =
          v[static_cast<size_t>((i / kLanes * rows + r) * kLanes + i % kLanes)];
  return out;
}

inline void copy_out(Kernel& k, Ref local, Ref to) {
  k.scope([&] { k.copy(local, to, k.dma_sem()).wait(); });
}
// bf16 as f32, on its way out.
inline void widen_out(Kernel& k, Ref local, Ref to) {
  k.scope([&] {
    const Ref wide = k.vmem(Elem::kF32, local.shape());
    wide.store(cast(local.load(), Elem::kF32));
    copy_out(k, wide, to);
  });
}

// The results of one launch (or several, on the memory that the ones before left).
inline std::vector<Bytes> run(const std::function<void(Kernel&)>& build,
                              const std::vector<Bytes>& inputs, int launches = 1) {
  Kernel k("block");
  build(k);
  const auto program = k.finish();
  EXPECT_TRUE(program) << to_string(program.error());
  if (!program) return {};
  const cpu::PerCoreBytes in = {inputs};
  const cpu::Ran emulated = cpu::run_emulated(*program, in, launches);
  EXPECT_TRUE(
      cpu::same_results(emulated, cpu::run_cpu(*program, in, {.hand_kernels = false}, launches)));
  return emulated.results.empty() ? std::vector<Bytes>{} : emulated.results[0];
}

// No element is further off than `share` of the largest one.
inline void expect_close(const Floats& expected, const Floats& actual, double share) {
  ASSERT_EQ(expected.size(), actual.size());
  double largest = 0;
  for (const float v : expected) largest = std::max(largest, std::abs(double{v}));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(expected[i], actual[i], share * largest) << "element " << i;
}

}  // namespace gridless::blocks
