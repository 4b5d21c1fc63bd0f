#include "gridless/tpu/runtime/buffer.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace gridless::tpu {
namespace {

using abi::Slot;

// What an event's callback leaves for whoever waits. Owned by both: the callback may come long
// after nobody waits any more.
class Outcome {
 public:
  void set(std::optional<PluginError> error) {
    const std::lock_guard lock(mutex_);
    over_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }
  bool wait_for(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [&] { return over_; });
  }
  const std::optional<PluginError>& error() const { return error_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::optional<PluginError> error_;
};

struct Callback {
  std::shared_ptr<Outcome> outcome;
  const abi::Api* api;

  static void run(abi::Error* error, void* argument) {
    const std::unique_ptr<Callback> self(static_cast<Callback*>(argument));
    std::optional<PluginError> taken;
    if (error != nullptr) taken = take_error(*self->api, error);
    self->outcome->set(std::move(taken));
  }
};

// Of work that was given up. The plugin may still call back, so nothing of it is freed.
void keep(const Callback* callback) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<const Callback*>;
  const std::lock_guard lock(mutex);
  kept.push_back(callback);
}

}  // namespace

Event& Event::operator=(Event&& o) noexcept {
  if (this == &o) return *this;
  destroy();
  connection_ = o.connection_;
  event_ = std::exchange(o.event_, nullptr);
  return *this;
}

void Event::destroy() {
  if (event_ == nullptr) return;
  auto args = make_args<abi::EventArgs>();
  args.event = std::exchange(event_, nullptr);
  release(*connection_, Slot::kEventDestroy, args);
}

Result<void> Event::wait(const Step& step) {
  if (event_ == nullptr) return {};
  const auto outcome = std::make_shared<Outcome>();
  auto callback = std::make_unique<Callback>(outcome, connection_->api);
  auto args = make_args<abi::EventOnReadyArgs>();
  args.event = event_;
  args.callback = &Callback::run;
  args.argument = callback.get();
  Result<void> asked = checked(*connection_, Slot::kEventOnReady, args, step);
  if (asked) {
    const Callback* asked_for = callback.release();  // it frees itself
    if (!outcome->wait_for(connection_->limit)) {
      keep(asked_for);
      return std::unexpected(hang(*connection_, step));
    }
    if (outcome->error()) asked = std::unexpected(runtime_error(step, *outcome->error()));
  } else {
    // The memory that the work uses must not be freed before it is over.
    auto await = make_args<abi::EventArgs>();
    await.event = event_;
    release(*connection_, Slot::kEventAwait, await);
  }
  destroy();
  return asked;
}

Buffer& Buffer::operator=(Buffer&& o) noexcept {
  if (this == &o) return *this;
  destroy();
  connection_ = o.connection_;
  buffer_ = std::exchange(o.buffer_, nullptr);
  return *this;
}

void Buffer::destroy() {
  if (buffer_ == nullptr) return;
  auto args = make_args<abi::BufferArgs>();
  args.buffer = std::exchange(buffer_, nullptr);
  release(*connection_, Slot::kBufferDestroy, args);
}

Result<void> Buffer::wait(const Step& step) const {
  auto args = make_args<abi::BufferReadyEventArgs>();
  args.buffer = buffer_;
  TRY_VOID(checked(*connection_, Slot::kBufferReadyEvent, args, step));
  return Event(*connection_, args.event).wait(step);
}

Result<void> Buffer::read(std::span<std::byte> data, const Step& step) const {
  auto args = make_args<abi::BufferToHostArgs>();
  args.source = buffer_;
  args.data = data.data();
  args.size = data.size();
  TRY_VOID(checked(*connection_, Slot::kBufferToHostBuffer, args, step));
  return Event(*connection_, args.event).wait(step);
}

}  // namespace gridless::tpu
