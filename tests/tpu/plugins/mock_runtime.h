// The half of the mock plugin that runs programs: a client with devices whose memory is host
// memory, and functions that mind what the host does. mock_programs.h says what programs compute,
// mock_launch.h launches them, mock_world.h keeps the objects.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/tpu/plugins/mock_launch.h"
#include "tests/tpu/plugins/mock_options.h"

namespace mock {

inline NamedValue attribute(std::string_view name, int type) {
  NamedValue value;
  value.name = name.data();
  value.name_size = name.size();
  value.type = type;
  return value;
}

inline Error* client_create(ClientCreateArgs* args) {
  int x = 1, y = 1, z = 1;
  sscanf(environment("MOCK_SLICE", "1x1x1").c_str(), "%dx%dx%d", &x, &y, &z);
  const bool swapped = environment("MOCK_PJRT", "") == "renumbered";
  auto client = std::make_unique<Client>();
  client->platform = environment("MOCK_PLATFORM", "tpu");
  client->version = environment("MOCK_VERSION", "mock 1");
  const int n = 2 * x * y * z;
  client->descriptions.resize(static_cast<size_t>(n));
  client->devices.resize(static_cast<size_t>(n));
  const int hosts = number("MOCK_HOSTS", 1), host = number("MOCK_HOST", 0);
  for (int id = 0; id < n; ++id) {
    DeviceDescription& d = client->descriptions[static_cast<size_t>(id)];
    const int chip = id / 2;
    d.id = id;
    d.coordinates[swapped ? 1 : 0] = chip % x;
    d.coordinates[swapped ? 0 : 1] = chip / x % y;
    d.coordinates[2] = chip / (x * y);
    d.attributes[0] = attribute("coords", NamedValue::kInt64List);
    d.attributes[0].int64_list = d.coordinates;
    d.attributes[0].value_size = 3;
    d.attributes[1] = attribute("core_on_chip", NamedValue::kInt64);
    d.attributes[1].int64_value = id % 2;
    d.attributes[1].value_size = 1;
    Device& device = client->devices[static_cast<size_t>(id)];
    device.description = &d;
    client->all.push_back(&device);
    if (id / (n / hosts) == host) client->local.push_back(&device);
  }
  args->client = world().add(std::move(client));
  return nullptr;
}
inline Error* client_destroy(ClientDestroyArgs* args) {
  world().remove(args->client, "client");
  if (world().live() != 0) world().complain("client destroyed before what was made from it");
  return nullptr;
}
inline void give(const std::string& text, ClientTextArgs* args) {
  args->text = text.data();
  args->text_size = text.size();
}
inline Error* platform_name(ClientTextArgs* args) {
  give(args->client->platform, args);
  return nullptr;
}
inline Error* platform_version(ClientTextArgs* args) {
  give(args->client->version, args);
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

inline Error* load(Client* client, std::string text, std::string_view options,
                   LoadedExecutable** out) {
  auto loaded = std::make_unique<LoadedExecutable>();
  loaded->ids = program_devices(text, options);
  for (const int id : loaded->ids) {
    if (id >= static_cast<int>(client->all.size())) return new Error{"no such device", 3};
    Device* device = client->all[static_cast<size_t>(id)];
    if (std::ranges::find(client->local, device) != client->local.end())
      loaded->devices.push_back(device);
  }
  loaded->program = make_program(text);
  if (!loaded->program) return new Error{"not a program", 3};
  loaded->text = std::move(text);
  *out = world().add(std::move(loaded));
  return nullptr;
}
inline Error* client_compile(ClientCompileArgs* args) {
  return load(args->client, std::string(args->program->code, args->program->code_size),
              std::string_view(args->options, args->options_size), &args->executable);
}
// "MOCK", the program's text, "|", its options.
inline Error* deserialize(DeserializeAndLoadArgs* args) {
  const std::string_view bytes(args->bytes, args->bytes_size);
  if (!bytes.starts_with("MOCK")) return new Error{"not an executable of this build", 3};
  const size_t end = std::min(bytes.rfind("}\n|"), bytes.size());
  return load(args->client, std::string(bytes.substr(4, end - 4)),
              bytes.substr(std::min(end + 3, bytes.size())), &args->executable);
}
inline Error* loaded_destroy(LoadedExecutableArgs* args) {
  world().remove(args->executable, "loaded executable");
  args->executable->program.reset();
  return nullptr;
}
inline Error* loaded_executable(LoadedExecutableGetExecutableArgs* args) {
  args->executable = new Executable{std::to_string(args->loaded->program->results())};
  return nullptr;
}
inline Error* num_outputs(ExecutableNumOutputsArgs* args) {
  args->num_outputs = std::stoul(args->executable->bytes);
  return nullptr;
}
inline Error* loaded_devices(LoadedExecutableDevicesArgs* args) {
  args->devices = args->executable->devices.data();
  args->num_devices = args->executable->devices.size();
  return nullptr;
}

// Bytes of an element, by PJRT_Buffer_Type.
inline size_t element_bytes(int type) {
  switch (type) {
    case 3:
    case 7:
    case 10:
    case 13:
      return 2;
    case 4:
    case 8:
    case 11:
      return 4;
    case 5:
    case 9:
    case 12:
      return 8;
    default:
      return 1;
  }
}
// None when the device is full.
inline std::shared_ptr<Storage> allocate(const Device& device, size_t bytes) {
  static const auto limit = std::stoull(environment("MOCK_HBM", "1000000000000"));
  if (*device.used + bytes > limit) return nullptr;
  *device.used += bytes;
  return std::make_shared<Storage>(bytes, device.used);
}
inline Error* full(size_t bytes) {
  return new Error{
      "Error allocating device buffer: Attempting to allocate " + std::to_string(bytes) + " bytes",
      8};
}

inline Error* buffer_from_host(BufferFromHostArgs* args) {
  size_t bytes = element_bytes(args->type);
  for (size_t i = 0; i < args->num_dims; ++i) bytes *= static_cast<size_t>(args->dims[i]);
  auto buffer = std::make_unique<Buffer>();
  buffer->storage = allocate(*args->device, bytes);
  if (!buffer->storage) return full(bytes);
  buffer->device = args->device;
  // Read later, on purpose: the host's memory must still be there.
  args->done_with_host_buffer =
      world().enqueue([storage = buffer->storage, data = args->data, bytes] {
        memcpy(storage->bytes.data(), data, bytes);
        return std::string();
      });
  args->buffer = world().add(std::move(buffer));
  return nullptr;
}
inline Error* buffer_destroy(BufferArgs* args) {
  world().remove(args->buffer, "buffer");
  args->buffer->storage.reset();
  return nullptr;
}
inline Error* buffer_to_host(BufferToHostArgs* args) {
  if (!usable(args->source, "reading")) return new Error{"deleted or donated", 9};
  const std::shared_ptr<Storage> storage = args->source->storage;
  if (args->size < storage->bytes.size()) {
    world().complain("reading into too little memory");
    return new Error{"too small", 3};
  }
  args->event = world().enqueue([storage, data = static_cast<std::byte*>(args->data)] {
    std::ranges::copy(storage->bytes, data);
    if (!environment("MOCK_CORRUPT", "").empty()) data[0] ^= std::byte{1};
    return std::string();
  });
  return nullptr;
}
inline Error* buffer_ready(BufferReadyEventArgs* args) {
  if (!usable(args->buffer, "waiting")) return new Error{"deleted or donated", 9};
  args->event = world().enqueue([] { return std::string(); });
  return nullptr;
}

inline Error* event_on_ready(EventOnReadyArgs* args) {
  if (!world().alive(args->event)) {
    world().complain("waiting for an event that was destroyed");
    return new Error{"no such event", 3};
  }
  world().when_ready(args->event, [call = args->callback, argument = args->argument](Error* error) {
    call(error, argument);
  });
  return nullptr;
}
inline Error* event_await(EventArgs* args) {
  world().await(args->event);
  return args->event->error.empty() ? nullptr : new Error{args->event->error, 13};
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
  install<Slot::kEventAwait, event_await>(api);
  install<Slot::kEventOnReady, event_on_ready>(api);
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
extern "C" void MockForget() { mock::world().forget(); }
extern "C" int MockLaunches() { return mock::world().launches; }
