// The half of the mock plugin that runs programs: a client with devices whose memory is host
// memory, one worker thread that does everything asynchronous, and a strict eye on what the host
// does.
//
// A program runs the host function that its text names:
//   mock:increment   operands state (i32, donated), step (i32, 1 element); results state + step,
//   and
//                    the sum of the new state (i32, 1 element) plus 1000 times the device's id
// "mock:devices=1,0" says on which devices its cores run; without it on device 0.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
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
struct Executable {
  std::string bytes;
};
struct DeviceDescription {
  int id = 0;
  int64_t coordinates[3] = {};
  NamedValue attributes[2] = {};
};
struct Device {
  DeviceDescription* description = nullptr;
};
struct Client {
  std::vector<DeviceDescription> descriptions;
  std::vector<Device> devices;
  std::vector<Device*> all, local;
};
struct LoadedExecutable {
  std::string text;
  std::vector<Device*> devices;
};
// Shared by the handle and by work under way.
struct Storage {
  std::vector<std::byte> bytes;
};
struct Buffer {
  std::shared_ptr<Storage> storage;
  Device* device = nullptr;
  bool donated = false;
};
struct Event {
  bool ready = false;
};

}  // namespace gridless::tpu::abi

namespace mock {

using namespace gridless::tpu::abi;  // NOLINT: this file is the other side of that namespace

// Everything that outlives single calls. Handles are never freed, so that a stale one is seen.
class World {
 public:
  static World& get() {
    static World world;
    return world;
  }
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

  // Work for the one worker, in order; the event is ready behind it.
  Event* enqueue(std::function<void()> work) {
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

  void inject(int slot, int code, int skip) {
    const std::lock_guard lock(mutex_);
    slot_ = slot;
    code_ = code;
    skip_ = skip;
  }
  Error* injected(int slot) {
    const std::lock_guard lock(mutex_);
    if (code_ == 0 || slot != slot_ || skip_-- > 0) return nullptr;
    return new Error{"injected", std::exchange(code_, 0)};
  }
  std::atomic<int> launches = 0;

 private:
  void complain_locked(const std::string& text) { violations_ += text + "\n"; }
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto [work, event] = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
      event->ready = true;
      wake_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread worker_;
  bool stop_ = false;
  std::deque<std::pair<std::function<void()>, Event*>> queue_;
  std::set<const void*> live_;
  std::vector<std::shared_ptr<void>> graveyard_;
  std::string violations_;
  int slot_ = -1, code_ = 0, skip_ = 0;
};

inline World& world() { return World::get(); }

inline std::string environment(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value ? value : otherwise;
}

inline Error* client_create(ClientCreateArgs* args) {
  int x = 1, y = 1, z = 1;
  sscanf(environment("MOCK_SLICE", "1x1x1").c_str(), "%dx%dx%d", &x, &y, &z);
  const bool swapped = environment("MOCK_PJRT", "") == "renumbered";
  auto client = std::make_unique<Client>();
  const int n = 2 * x * y * z;
  client->descriptions.resize(static_cast<size_t>(n));
  client->devices.resize(static_cast<size_t>(n));
  const int hosts = std::stoi(environment("MOCK_HOSTS", "1"));
  for (int id = 0; id < n; ++id) {
    DeviceDescription& d = client->descriptions[static_cast<size_t>(id)];
    const int chip = id / 2;
    d.id = id;
    d.coordinates[swapped ? 1 : 0] = chip % x;
    d.coordinates[swapped ? 0 : 1] = chip / x % y;
    d.coordinates[2] = chip / (x * y);
    d.attributes[0] = {.name = "coords", .name_size = 6, .type = NamedValue::kInt64List};
    d.attributes[0].int64_list = d.coordinates;
    d.attributes[0].value_size = 3;
    d.attributes[1] = {.name = "core_on_chip", .name_size = 12, .type = NamedValue::kInt64};
    d.attributes[1].int64_value = id % 2;
    d.attributes[1].value_size = 1;
    Device& device = client->devices[static_cast<size_t>(id)];
    device.description = &d;
    client->all.push_back(&device);
    if (id < n / hosts) client->local.push_back(&device);
  }
  args->client = world().add(std::move(client));
  return nullptr;
}
inline Error* client_destroy(ClientDestroyArgs* args) {
  world().remove(args->client, "client");
  if (world().live() != 0) world().complain("client destroyed before what was made from it");
  return nullptr;
}
inline Error* platform_name(ClientTextArgs* args) {
  static const std::string name = environment("MOCK_PLATFORM", "tpu");
  args->text = name.data();
  args->text_size = name.size();
  return nullptr;
}
inline Error* platform_version(ClientTextArgs* args) {
  args->text = "mock 1";
  args->text_size = 6;
  return nullptr;
}
inline Error* devices(ClientDevicesArgs* args) {
  args->devices = args->client->all.data();
  args->num_devices = args->client->all.size();
  return nullptr;
}
inline Error* local_devices(ClientDevicesArgs* args) {
  args->devices = args->client->local.data();
  args->num_devices = args->client->local.size();
  return nullptr;
}
inline Error* device_description(DeviceGetDescriptionArgs* args) {
  args->description = args->device->description;
  return nullptr;
}

inline LoadedExecutable* load(Client* client, std::string text) {
  auto loaded = std::make_unique<LoadedExecutable>();
  std::string list = "0,";
  if (const size_t at = text.find("mock:devices="); at != std::string::npos)
    list = text.substr(at + strlen("mock:devices="), text.find(' ', at) - at - 13) + ",";
  for (size_t at = 0, end; (end = list.find(',', at)) != std::string::npos; at = end + 1) {
    Device* device = client->all[static_cast<size_t>(std::stoi(list.substr(at, end - at)))];
    if (std::ranges::find(client->local, device) != client->local.end())
      loaded->devices.push_back(device);
  }
  loaded->text = std::move(text);
  return world().add(std::move(loaded));
}
inline Error* client_compile(ClientCompileArgs* args) {
  args->executable = load(args->client, std::string(args->program->code, args->program->code_size));
  return nullptr;
}
inline Error* deserialize(DeserializeAndLoadArgs* args) {
  const std::string_view bytes(args->bytes, args->bytes_size);
  if (!bytes.starts_with("MOCK")) return new Error{"not an executable of this build", 3};
  args->executable = load(args->client, std::string(bytes.substr(4)));
  return nullptr;
}
inline Error* loaded_destroy(LoadedExecutableArgs* args) {
  world().remove(args->executable, "loaded executable");
  return nullptr;
}
inline Error* loaded_executable(LoadedExecutableGetExecutableArgs* args) {
  args->executable = new Executable{args->loaded->text};
  return nullptr;
}
inline Error* num_outputs(ExecutableNumOutputsArgs* args) {
  args->num_outputs = 2;
  return nullptr;
}
inline Error* loaded_devices(LoadedExecutableDevicesArgs* args) {
  args->devices = args->executable->devices.data();
  args->num_devices = args->executable->devices.size();
  return nullptr;
}

inline Error* buffer_from_host(BufferFromHostArgs* args) {
  size_t bytes = args->type == 4 ? 4 : 0;  // i32 is enough here
  for (size_t i = 0; i < args->num_dims; ++i) bytes *= static_cast<size_t>(args->dims[i]);
  auto buffer = std::make_unique<Buffer>();
  buffer->storage = std::make_shared<Storage>();
  buffer->storage->bytes.resize(bytes);
  buffer->device = args->device;
  // Read later, on purpose: the host's memory must still be there.
  args->done_with_host_buffer =
      world().enqueue([storage = buffer->storage, data = args->data, bytes] {
        memcpy(storage->bytes.data(), data, bytes);
      });
  args->buffer = world().add(std::move(buffer));
  return nullptr;
}
inline bool usable(const Buffer* buffer, const char* what) {
  if (buffer != nullptr && world().alive(buffer) && !buffer->donated) return true;
  world().complain(std::string(what) + " of a buffer that was " +
                   (buffer != nullptr && buffer->donated ? "donated" : "destroyed"));
  return false;
}
inline Error* buffer_destroy(BufferArgs* args) {
  world().remove(args->buffer, "buffer");
  return nullptr;
}
inline Error* buffer_to_host(BufferToHostArgs* args) {
  if (!usable(args->source, "reading")) return new Error{"deleted or donated", 9};
  const std::shared_ptr<Storage> storage = args->source->storage;
  if (args->size < storage->bytes.size()) {
    world().complain("reading into too little memory");
    return new Error{"too small", 3};
  }
  args->event = world().enqueue(
      [storage, data = args->data] { memcpy(data, storage->bytes.data(), storage->bytes.size()); });
  return nullptr;
}
inline Error* buffer_ready(BufferReadyEventArgs* args) {
  if (!usable(args->buffer, "waiting")) return new Error{"deleted or donated", 9};
  args->event = world().enqueue([] {});
  return nullptr;
}

inline void increment(Storage& state, const Storage& step, Storage& sum, int device) {
  const size_t n = state.bytes.size() / 4;
  std::vector<int32_t> values(n);
  memcpy(values.data(), state.bytes.data(), n * 4);
  int32_t by = 0;
  memcpy(&by, step.bytes.data(), 4);
  for (int32_t& value : values) value += by;
  memcpy(state.bytes.data(), values.data(), n * 4);
  const int32_t total = std::accumulate(values.begin(), values.end(), 1000 * device);
  memcpy(sum.bytes.data(), &total, 4);
}

inline Error* execute(ExecuteArgs* args) {
  const LoadedExecutable& program = *args->executable;
  if (args->num_devices != program.devices.size()) return new Error{"wrong number of devices", 3};
  for (size_t d = 0; d < args->num_devices; ++d) {
    for (size_t k = 0; k < args->num_arguments; ++k) {
      const Buffer* buffer = args->arguments[d][k];
      if (!usable(buffer, "launching on")) return new Error{"deleted or donated", 3};
      if (buffer->device != program.devices[d]) {
        world().complain("launching on a buffer of another device");
        return new Error{"wrong device", 3};
      }
    }
  }
  ++world().launches;
  for (size_t d = 0; d < args->num_devices; ++d) {
    Buffer& state = *args->arguments[d][0];
    auto sum = std::make_unique<Buffer>();
    sum->storage = std::make_shared<Storage>();
    sum->storage->bytes.resize(4);
    sum->device = state.device;
    auto updated = std::make_unique<Buffer>(state);
    state.donated = true;
    args->device_complete[d] = world().enqueue(
        [state = updated->storage, step = args->arguments[d][1]->storage, sum = sum->storage,
         id = state.device->description->id] { increment(*state, *step, *sum, id); });
    args->outputs[d][0] = world().add(std::move(updated));
    args->outputs[d][1] = world().add(std::move(sum));
  }
  return nullptr;
}

// Not guarded: an error of asynchronous work comes when the work is over.
inline Error* event_await(EventArgs* args) {
  if (args->header.struct_size < sizeof(EventArgs)) return new Error{"Unexpected size", 3};
  if (!world().alive(args->event)) {
    world().complain("waiting for an event that was destroyed");
    return nullptr;
  }
  world().await(args->event);
  return world().injected(static_cast<int>(Slot::kEventAwait));
}
inline Error* event_destroy(EventArgs* args) {
  // A launch or copy goes on without its event, as PJRT says.
  world().remove(args->event, "event");
  return nullptr;
}

// What every function does first: sizes as real plugins check them, and the injected error.
template <Slot kSlot, auto kFunction>
struct Guarded;
template <Slot kSlot, typename Args, Error* (*kFunction)(Args*)>
struct Guarded<kSlot, kFunction> {
  static Error* call(Args* args) {
    if (args->header.struct_size < sizeof(Args)) return new Error{"Unexpected size", 3};
    if (Error* error = world().injected(static_cast<int>(kSlot))) return error;
    return kFunction(args);
  }
};
template <Slot kSlot, auto kFunction>
void install(Api& api) {
  api.slots[static_cast<int>(kSlot)] = reinterpret_cast<void*>(&Guarded<kSlot, kFunction>::call);
}

inline void install_runtime(Api& api) {
  install<Slot::kEventDestroy, event_destroy>(api);
  api.slots[static_cast<int>(Slot::kEventAwait)] = reinterpret_cast<void*>(&event_await);
  install<Slot::kClientCreate, client_create>(api);
  install<Slot::kClientDestroy, client_destroy>(api);
  install<Slot::kClientPlatformName, platform_name>(api);
  install<Slot::kClientPlatformVersion, platform_version>(api);
  install<Slot::kClientDevices, devices>(api);
  install<Slot::kClientAddressableDevices, local_devices>(api);
  install<Slot::kClientCompile, client_compile>(api);
  install<Slot::kClientBufferFromHostBuffer, buffer_from_host>(api);
  install<Slot::kDeviceGetDescription, device_description>(api);
  install<Slot::kExecutableNumOutputs, num_outputs>(api);
  install<Slot::kLoadedExecutableDestroy, loaded_destroy>(api);
  install<Slot::kLoadedExecutableGetExecutable, loaded_executable>(api);
  install<Slot::kLoadedExecutableAddressableDevices, loaded_devices>(api);
  install<Slot::kLoadedExecutableExecute, execute>(api);
  install<Slot::kExecutableDeserializeAndLoad, deserialize>(api);
  install<Slot::kBufferDestroy, buffer_destroy>(api);
  install<Slot::kBufferToHostBuffer, buffer_to_host>(api);
  install<Slot::kBufferReadyEvent, buffer_ready>(api);
}

}  // namespace mock

extern "C" void MockInject(int slot, int code, int skip) { mock::world().inject(slot, code, skip); }
extern "C" const char* MockViolations() {
  static std::string text;
  text = mock::world().take_violations();
  return text.c_str();
}
extern "C" int MockLive() { return mock::world().live(); }
extern "C" int MockLaunches() { return mock::world().launches; }
