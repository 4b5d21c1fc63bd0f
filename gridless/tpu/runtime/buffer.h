// What the plugin owns and we hold: an event (something asynchronous that will be over), a buffer
// (an array in the memory of one device). Both are freed exactly once, by the destructor, and must
// not outlive their Client.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "gridless/base/error.h"

namespace gridless::tpu {

namespace abi {
struct Api;
struct Buffer;
struct Event;
}  // namespace abi

class Event {
 public:
  Event() = default;
  Event(const abi::Api* api, abi::Event* event) : api_(api), event_(event) {}
  ~Event() { destroy(); }
  Event(Event&& o) noexcept : api_(o.api_), event_(std::exchange(o.event_, nullptr)) {}
  Event& operator=(Event&& o) noexcept;

  // Blocks until it is over and frees the event. An error of the work is one that says `what`
  // failed. Without an event there is nothing to wait for.
  Result<void> wait(std::string_view what);

 private:
  void destroy();

  const abi::Api* api_ = nullptr;
  abi::Event* event_ = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(const abi::Api* api, abi::Buffer* buffer) : api_(api), buffer_(buffer) {}
  ~Buffer() { destroy(); }
  Buffer(Buffer&& o) noexcept : api_(o.api_), buffer_(std::exchange(o.buffer_, nullptr)) {}
  Buffer& operator=(Buffer&& o) noexcept;

  bool empty() const { return buffer_ == nullptr; }
  abi::Buffer* handle() const { return buffer_; }

  // Blocks until its contents are there; the error is that of whatever should have made them.
  Result<void> wait(std::string_view what) const;
  // Copies it to the host, row-major; `data` has exactly its bytes. `what` names it in an error.
  Result<void> read(std::span<std::byte> data, std::string_view what) const;

 private:
  void destroy();

  const abi::Api* api_ = nullptr;
  abi::Buffer* buffer_ = nullptr;
};

}  // namespace gridless::tpu
