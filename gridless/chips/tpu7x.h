// TPU v7 (tpu7x, Ironwood) as numbers, per TensorCore unless the name says chip. A core is what XLA
// calls a device; a chip has two. Every number carries where it is from:
//   spec      the vendor's documentation or constants in its published code
//   libtpu    what the compiler libtpu 0.0.51 enforces, found by compiling programs around the
//   limit measured  published measurements on hardware derived   arithmetic on the above
// Latencies and costs of operations are not here: they come with the time model's parameter sets.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gridless::chips {

enum class Source { kSpec, kLibtpu, kMeasured, kDerived };
std::string_view source_name(Source source);

template <typename T>
struct Fact {
  T value;
  Source source;
  std::string_view note;                          // how it is known, or what to beware of
  constexpr operator T() const { return value; }  // NOLINT: used as the number that it is
};

inline constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct Tpu7x {
  // Memories, bytes.
  Fact<int64_t> vmem_bytes{64 * kMiB, Source::kSpec, "software-managed, private to the core"};
  Fact<int64_t> vmem_usable_bytes{64 * kMiB - 64 * kKiB, Source::kLibtpu,
                                  "all allocations of a program: 'exceeds 63.94M vmem'"};
  Fact<int64_t> vmem_default_limit_bytes{32 * kMiB, Source::kLibtpu,
                                         "scoped allocations unless vmem_limit_bytes says more"};
  Fact<int64_t> smem_bytes{kMiB, Source::kSpec, "scalars; a few hundred bytes are the system's"};
  Fact<int64_t> smem_usable_bytes{1020 * kKiB, Source::kLibtpu, "1020 KiB compile, 1024 do not"};
  Fact<int> semaphores{4096, Source::kLibtpu,
                       "16 KiB of 4-byte flags, DMA and regular in one pool"};
  Fact<int> semaphores_usable{4096 - 215, Source::kLibtpu, "about 215 are the system's"};
  Fact<int64_t> hbm_bytes{103'079'215'104, Source::kSpec, "192 GiB per chip, half to each core"};
  Fact<int64_t> hbm_usable_bytes{101'726'300'000, Source::kLibtpu,
                                 "94.74 GiB of arguments and temporaries"};

  // Rates, bytes per second.
  Fact<double> hbm_bytes_per_second{3.69e12, Source::kSpec, "7380 GB/s per chip"};
  Fact<double> hbm_copy_bytes_per_second{3.21e12, Source::kMeasured,
                                         "large copies, read + written"};
  Fact<double> hbm_stream_bytes_per_second{3.05e12, Source::kMeasured,
                                           "weight ring inside a kernel: 2.9 to 3.05"};
  Fact<double> die_to_die_bytes_per_second{663e9, Source::kMeasured,
                                           "to the chip's other core, one way"};
  Fact<double> ici_link_bytes_per_second{100e9, Source::kSpec,
                                         "per link and direction; 6 per chip"};
  Fact<double> ici_peer_bytes_per_second{46e9, Source::kMeasured, "one other chip, per direction"};
  Fact<double> ici_core_bytes_per_second{134e9, Source::kMeasured, "three peers at once"};
  Fact<int> ici_links_per_chip{6, Source::kSpec, "3-D torus"};

  // Compute.
  Fact<double> clock_hz{2.2e9, Source::kDerived,
                        "2307 TFLOP/s over 4 MXUs of 262144 FLOP per cycle"};
  Fact<int> mxus{2, Source::kSpec, "four per chip"};
  Fact<int> mxu_size{256, Source::kSpec, "256 x 256"};
  Fact<double> bf16_flops{1.1535e15, Source::kSpec, "2307 TFLOP/s per chip"};
  Fact<double> fp8_flops{2.307e15, Source::kSpec, "4614 TFLOP/s per chip"};
  Fact<int> sublanes{8, Source::kSpec, "rows of a vector register of 32-bit elements"};
  Fact<int> lanes{128, Source::kSpec, "columns of a vector register"};
  Fact<int> dma_granule_bytes{32, Source::kLibtpu, "sizes of copies in its listings"};

  // Shape of the machine.
  Fact<int> cores_per_chip{2, Source::kSpec, "each its own device"};
  Fact<int> chips_per_host{4, Source::kSpec, "2x2x1"};
  Fact<int> chips_per_pod{9216, Source::kSpec,
                          "the torus wraps only on multiples of 4 chips a side"};
};

inline constexpr Tpu7x kTpu7x;

// One row per fact of kTpu7x, in the order above, for printing.
struct FactRow {
  std::string_view name;
  double value;
  Source source;
  std::string_view note;
};
std::span<const FactRow> tpu7x_facts();

}  // namespace gridless::chips
