// Page-aligned zeroed memory in huge pages where the system has them: weights are read once per
// step, and a TLB miss per 4 kB would cost more than the read. Pages that are never written take no
// memory.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "gridless/base/check.h"

namespace gridless::decode {

class HugeMemory {
 public:
  HugeMemory() = default;
  explicit HugeMemory(size_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, std::max<size_t>(bytes_, 1), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GRIDLESS_CHECK(p != MAP_FAILED, "no memory for {} bytes", bytes_);
    madvise(p, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(p);
  }
  ~HugeMemory() {
    if (data_) munmap(data_, std::max<size_t>(bytes_, 1));
  }
  HugeMemory(HugeMemory&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  HugeMemory& operator=(HugeMemory&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gridless::decode
