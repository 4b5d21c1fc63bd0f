#include "gridless/tpu/runtime/buffer.h"

#include "gridless/tpu/runtime/runtime_error.h"

namespace gridless::tpu {

using abi::Slot;

Event& Event::operator=(Event&& o) noexcept {
  if (this == &o) return *this;
  destroy();
  api_ = o.api_;
  event_ = std::exchange(o.event_, nullptr);
  return *this;
}

void Event::destroy() {
  if (event_ == nullptr) return;
  auto args = make_args<abi::EventArgs>();
  args.event = std::exchange(event_, nullptr);
  // Nothing can be done about an event that cannot be freed.
  if (auto done = try_call(*api_, Slot::kEventDestroy, args); !done) return;
}

Result<void> Event::wait(std::string_view what) {
  if (event_ == nullptr) return {};
  auto args = make_args<abi::EventArgs>();
  args.event = event_;
  Result<void> done = checked(*api_, Slot::kEventAwait, args, what);
  destroy();
  return done;
}

Buffer& Buffer::operator=(Buffer&& o) noexcept {
  if (this == &o) return *this;
  destroy();
  api_ = o.api_;
  buffer_ = std::exchange(o.buffer_, nullptr);
  return *this;
}

void Buffer::destroy() {
  if (buffer_ == nullptr) return;
  auto args = make_args<abi::BufferArgs>();
  args.buffer = std::exchange(buffer_, nullptr);
  if (auto done = try_call(*api_, Slot::kBufferDestroy, args); !done) return;
}

Result<void> Buffer::wait(std::string_view what) const {
  auto args = make_args<abi::BufferReadyEventArgs>();
  args.buffer = buffer_;
  TRY_VOID(checked(*api_, Slot::kBufferReadyEvent, args, what));
  return Event(api_, args.event).wait(what);
}

Result<void> Buffer::read(std::span<std::byte> data, std::string_view what) const {
  auto args = make_args<abi::BufferToHostArgs>();
  args.source = buffer_;
  args.data = data.data();
  args.size = data.size();
  TRY_VOID(checked(*api_, Slot::kBufferToHostBuffer, args, what));
  return Event(api_, args.event).wait(what);
}

}  // namespace gridless::tpu
