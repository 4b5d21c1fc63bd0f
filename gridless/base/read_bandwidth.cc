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

// A thread whose chunks end further apart than this was off its processor in between.
constexpr double kPauseSeconds = kWindowSeconds / 4;

struct Pause {
  Clock::time_point from, to;
};

// When a thread was not running: before its first chunk, after its last and in the gaps.
void add_pauses(std::span<const Clock::time_point> ends, std::vector<Pause>& pauses) {
  pauses.push_back({Clock::time_point::min(), ends.front()});
  for (std::size_t i = 1; i < ends.size(); ++i) {
    if (std::chrono::duration<double>(ends[i] - ends[i - 1]).count() > kPauseSeconds) {
      pauses.push_back({ends[i - 1], ends[i]});
    }
  }
  pauses.push_back({ends.back(), Clock::time_point::max()});
}

// Most chunks that ended within one window that holds no pause of any of these threads; 0: there is
// no such window.
// With `whole` false pauses are allowed.
std::size_t best_window(std::span<const std::vector<Clock::time_point>> threads,
                        bool whole = true) {
  std::vector<Clock::time_point> ends;
  std::vector<Pause> pauses;
  for (const auto& list : threads) {
    ends.insert(ends.end(), list.begin(), list.end());
    add_pauses(list, pauses);
  }
  std::ranges::sort(ends);
  std::ranges::sort(pauses, {}, &Pause::from);
  const std::chrono::duration<double> window(kWindowSeconds);
  std::size_t best = 0, next_pause = 0;
  Clock::time_point running_since = Clock::time_point::min();
  for (std::size_t last = 0, first = 0; last < ends.size(); ++last) {
    for (; next_pause < pauses.size() && pauses[next_pause].from < ends[last]; ++next_pause) {
      running_since = std::max(running_since, pauses[next_pause].to);
    }
    while (ends[last] - ends[first] > window) ++first;
    if (!whole || (running_since < ends[last] && ends[last] - running_since >= window)) {
      best = std::max(best, last - first);
    }
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
  std::size_t together = 0, alone = 0;
  // A round may find no window in which every thread ran: others may find one.
  for (int round = 0; round < 3 && together == 0; ++round) {
    std::vector<std::jthread> team;
    for (std::size_t t = 0; t < threads; ++t) {
      team.emplace_back(
          [&, t] { ends[t] = stream({buffer.data() + t * part, part}, options.seconds, start); });
    }
    team.clear();  // joins
    together = best_window(ends);
    for (const auto& list : ends) alone = std::max(alone, best_window(std::span(&list, 1)));
  }
  if (alone == 0) {  // not one thread ran for a whole window: the least bad figure
    for (const auto& list : ends) {
      alone = std::max(alone, best_window(std::span(&list, 1), /*whole=*/false));
    }
  }
  const std::size_t chunks = together > 0 ? together : alone * threads;
  return ReadBandwidth{static_cast<double>(chunks * kChunk) / kWindowSeconds, options.threads,
                       part * threads, together > 0};
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
