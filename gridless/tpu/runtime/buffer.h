// What the plugin owns and we hold: an event (something asynchronous that will be over), a buffer
// (an array in the memory of one device). Both are freed exactly once, by the destructor, and must
// not outlive their Client.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "gridless/base/error.h"
#include "gridless/tpu/runtime/connection.h"

namespace gridless::tpu {

class Event {
 public:
  Event() = default;
  Event(Connection& connection, abi::Event* event) : connection_(&connection), event_(event) {}
  ~Event() { destroy(); }
  Event(Event&& o) noexcept
      : connection_(o.connection_), event_(std::exchange(o.event_, nullptr)) {}
  Event& operator=(Event&& o) noexcept;

  // Blocks until it is over and frees the event. Errors: that of the work, that it is not over
  // within the connection's limit. Without an event there is nothing to wait for.
  Result<void> wait(const Step& step);

 private:
  void destroy();

  Connection* connection_ = nullptr;
  abi::Event* event_ = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Connection& connection, abi::Buffer* buffer) : connection_(&connection), buffer_(buffer) {}
  ~Buffer() { destroy(); }
  Buffer(Buffer&& o) noexcept
      : connection_(o.connection_), buffer_(std::exchange(o.buffer_, nullptr)) {}
  Buffer& operator=(Buffer&& o) noexcept;

  bool empty() const { return buffer_ == nullptr; }
  abi::Buffer* handle() const { return buffer_; }

  // Blocks until its contents are there; the error is that of whatever should have made them.
  Result<void> wait(const Step& step) const;
  // Copies it to the host, row-major; `data` has exactly its bytes.
  Result<void> read(std::span<std::byte> data, const Step& step) const;

 private:
  void destroy();

  Connection* connection_ = nullptr;
  abi::Buffer* buffer_ = nullptr;
};

}  // namespace gridless::tpu
