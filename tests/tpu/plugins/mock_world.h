// What the mock plugin keeps beyond single calls: the objects it gave out, one worker thread that
// does everything asynchronous, a strict eye on what the host does, and the failures that tests
// inject.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gridless/tpu/pjrt_abi.h"
#include "tests/tpu/plugins/mock_control.h"

namespace gridless::tpu::abi {

struct Error {
  std::string text;
  int code = 3;
};
struct Event {
  bool ready = false;
  std::string error;  // of the work
  std::vector<std::function<void(Error*)>> callbacks;
};

}  // namespace gridless::tpu::abi

namespace mock {

using namespace gridless::tpu::abi;  // NOLINT: this file is the other side of that namespace

inline std::string environment(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value ? value : otherwise;
}

// Handles are never freed, so that a stale one is seen.
class World {
 public:
  static World& get() {
    static World world;
    return world;
  }
  World() { sscanf(environment("MOCK_INJECT", "").c_str(), "%d:%d:%d", &slot_, &code_, &skip_); }
  ~World() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (worker_.joinable()) worker_.join();
  }

  template <typename T>
  T* add(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    live_.insert(object.get());
    T* handle = object.get();
    graveyard_.push_back(std::shared_ptr<T>(std::move(object)));
    return handle;
  }
  void remove(const void* handle, const char* what) {
    const std::lock_guard lock(mutex_);
    if (live_.erase(handle) == 0) complain_locked(std::string(what) + " destroyed twice");
  }
  bool alive(const void* handle) {
    const std::lock_guard lock(mutex_);
    return live_.contains(handle);
  }
  void complain(const std::string& text) {
    const std::lock_guard lock(mutex_);
    complain_locked(text);
  }
  std::string take_violations() {
    const std::lock_guard lock(mutex_);
    return std::exchange(violations_, {});
  }
  int live() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(live_.size());
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    live_.clear();
  }

  // Work for the one worker, in order; the event is ready behind it. What it returns is its error,
  // "" for none.
  Event* enqueue(std::function<std::string()> work) {
    Event* event = add(std::make_unique<Event>());
    {
      const std::lock_guard lock(mutex_);
      if (!worker_.joinable()) worker_ = std::thread([this] { serve(); });
      queue_.emplace_back(std::move(work), event);
    }
    wake_.notify_all();
    return event;
  }
  void await(const Event* event) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return event->ready; });
  }
  // At once when it is ready, else by the worker.
  void when_ready(Event* event, std::function<void(Error*)> callback) {
    {
      const std::lock_guard lock(mutex_);
      if (!event->ready) {
        event->callbacks.push_back(std::move(callback));
        return;
      }
    }
    tell(*event, callback);
  }

  void inject(int slot, int code, int skip) {
    const std::lock_guard lock(mutex_);
    slot_ = slot;
    code_ = code;
    skip_ = skip;
    wake_.notify_all();
  }
  // The failure of a call of the function in `slot`. A call that hangs fails when another failure,
  // or none, is injected: it makes nothing that nobody would know of.
  Error* injected(int slot) {
    std::unique_lock lock(mutex_);
    if (!hit(slot)) return nullptr;
    if (code_ == kMockHang) {
      wake_.wait(lock, [&] { return stop_ || code_ != kMockHang; });
      return new Error{"the call hung", 13};
    }
    return new Error{"injected", std::exchange(code_, 0)};
  }
  std::atomic<int> launches = 0;

 private:
  bool hit(int slot) { return code_ != 0 && slot == slot_ && skip_-- <= 0; }
  void complain_locked(const std::string& text) { violations_ += text + "\n"; }
  void tell(const Event& event, const std::function<void(Error*)>& callback) {
    Error* error = event.error.empty() ? nullptr : new Error{event.error, 13};
    {
      const std::lock_guard lock(mutex_);
      if (hit(kMockAsynchronous)) {
        if (code_ == kMockHang) {
          hung_.push_back(callback);
          return;
        }
        delete error;
        error = new Error{"injected", std::exchange(code_, 0)};
      }
    }
    callback(error);
  }
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto [work, event] = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      std::string error = work();
      lock.lock();
      event->error = std::move(error);
      event->ready = true;
      wake_.notify_all();
      const auto callbacks = std::exchange(event->callbacks, {});
      lock.unlock();
      for (const auto& callback : callbacks) tell(*event, callback);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread worker_;
  bool stop_ = false;
  std::deque<std::pair<std::function<std::string()>, Event*>> queue_;
  std::set<const void*> live_;
  std::vector<std::shared_ptr<void>> graveyard_;
  std::vector<std::function<void(Error*)>> hung_;  // what they hold is not leaked
  std::string violations_;
  int slot_ = -1, code_ = 0, skip_ = 0;
};

inline World& world() { return World::get(); }

}  // namespace mock
