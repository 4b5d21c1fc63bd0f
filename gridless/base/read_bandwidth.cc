#include "gridless/base/read_bandwidth.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "gridless/base/check.h"

namespace gridless {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kWindowSeconds = 0.002;
// One time stamp per chunk: 8 us at 16 GB/s, so the stamps cost nothing and a window holds
// hundreds.
constexpr std::size_t kChunk = 128 << 10;

// Brings a chunk into the core. One load per cache line: the whole line moves all the same, and it
// reaches what AVX-512 loads of every byte reach (16.6 against 16.5 GB/s), where SSE2 loads of
// every byte stop at 13. Eight sums, so that the loads do not wait for the additions.
void read_chunk(const std::byte* data) {
  constexpr std::size_t kLine = 64 / sizeof(std::uint64_t);
  const std::uint64_t* words = reinterpret_cast<const std::uint64_t*>(data);
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < kChunk / sizeof(std::uint64_t); i += 8 * kLine) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j * kLine];
  }
  std::uint64_t total = 0;
  for (std::uint64_t sum : sums) total ^= sum;
  asm volatile("" : : "r"(total));  // the result is used, as far as the compiler knows
}

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(data);
    ::madvise(data, bytes, MADV_HUGEPAGE);  // filling is ten times faster; reading is no different
  }
  ~Buffer() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

std::size_t default_buffer_bytes() {
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or -1 where it is not known
  const long free = ::sysconf(_SC_AVPHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  constexpr long kLeast = 512L << 20, kMost = 1L << 30;
  const long wanted = std::clamp(2 * cache, kLeast, kMost);
  return static_cast<std::size_t>(std::min(wanted, free / 4));
}

// Writes every page of a thread's part (a page never written is one shared page of zeros, which the
// cache holds), waits for the others, then reads until the time is over. Returns the chunks' ends.
std::vector<Clock::time_point> stream(std::span<std::byte> part, double seconds,
                                      std::barrier<>& start) {
  constexpr std::size_t kPage = 4096;
  for (std::size_t i = 0; i < part.size(); i += kPage) part[i] = std::byte{1};
  start.arrive_and_wait();
  std::vector<Clock::time_point> ends;
  ends.reserve(1 << 14);
  const auto length =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const Clock::time_point deadline = Clock::now() + length;
  while (ends.empty() || ends.back() < deadline) {
    for (std::size_t i = 0; i < part.size(); i += kChunk) {
      read_chunk(part.data() + i);
      ends.push_back(Clock::now());
      if (ends.back() >= deadline) break;
    }
  }
  return ends;
}

// Most chunks that ended within one window.
std::size_t best_window(std::vector<Clock::time_point>& ends) {
  std::ranges::sort(ends);
  const std::chrono::duration<double> window(kWindowSeconds);
  std::size_t best = 0;
  for (std::size_t last = 0, first = 0; last < ends.size(); ++last) {
    while (ends[last] - ends[first] > window) ++first;
    best = std::max(best, last - first);
  }
  return best;
}

}  // namespace

Result<ReadBandwidth> measure_read_bandwidth(const ReadBandwidthOptions& options) {
  GRIDLESS_CHECK(options.threads >= 1, "threads = {}", options.threads);
  const std::size_t threads = static_cast<std::size_t>(options.threads);
  const std::size_t wanted =
      options.buffer_bytes > 0 ? options.buffer_bytes : default_buffer_bytes();
  const std::size_t part = std::max<std::size_t>(1, wanted / threads / kChunk) * kChunk;
  const Buffer buffer(part * threads);
  if (buffer.data() == nullptr) {
    return machine_error("no memory for a read bandwidth measurement of {} MB",
                         part * threads >> 20);
  }

  std::barrier start(options.threads);
  std::vector<std::vector<Clock::time_point>> ends(threads);
  {
    std::vector<std::jthread> team;
    for (std::size_t t = 0; t < threads; ++t) {
      team.emplace_back(
          [&, t] { ends[t] = stream({buffer.data() + t * part, part}, options.seconds, start); });
    }
  }
  std::vector<Clock::time_point> all;
  for (const auto& list : ends) all.insert(all.end(), list.begin(), list.end());
  const double rate = static_cast<double>(best_window(all) * kChunk) / kWindowSeconds;
  return ReadBandwidth{rate, options.threads, part * threads};
}

Result<ReadBandwidth> read_bandwidth(int threads) {
  static std::mutex mutex;
  static std::map<int, ReadBandwidth> measured;
  const std::lock_guard lock(mutex);
  if (const auto it = measured.find(threads); it != measured.end()) return it->second;
  const Result<ReadBandwidth> result = measure_read_bandwidth({.threads = threads});
  if (result) measured[threads] = *result;
  return result;
}

}  // namespace gridless
