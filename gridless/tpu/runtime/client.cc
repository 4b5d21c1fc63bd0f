#include "gridless/tpu/runtime/client.h"

#include <algorithm>

#include "gridless/tpu/device_attributes.h"
#include "gridless/tpu/pjrt_layouts.h"
#include "gridless/tpu/runtime/element_type.h"

namespace gridless::tpu {
namespace {

using abi::Slot;

Result<std::string> client_text(const Connection& connection, abi::Client* client, Slot slot) {
  auto args = make_args<abi::ClientTextArgs>();
  args.client = client;
  TRY_VOID(checked(connection, slot, args, {Stage::kStart, "asking the TPU client who it is"}));
  return std::string(args.text, args.text_size);
}

std::string place(const chips::DeviceCoordinates& at) {
  return fmt::format("({}, {}, {}) core {}", at.x, at.y, at.z, at.core);
}

}  // namespace

Upload::~Upload() {
  // The plugin may still be reading the host's memory; an error is for whoever asked to finish.
  if (auto done = host_.wait({Stage::kUpload, "an upload"}); !done) return;
}

Result<Buffer> Upload::finish(const Step& step) {
  TRY_VOID(host_.wait(step));
  TRY_VOID(buffer_.wait(step));
  return std::move(buffer_);
}

Result<std::unique_ptr<Client>> Client::create(const std::string& plugin_path,
                                               std::chrono::milliseconds limit) {
  TRY(const abi::Api* api, load_plugin(plugin_path));
  Connection connection{.api = api, .limit = limit};
  const Step step = {Stage::kStart, "starting the TPU client"};
  auto args = std::make_shared<abi::ClientCreateArgs>(make_args<abi::ClientCreateArgs>());
  TRY_VOID(within_limit(connection, step, [connection, step, args] {
    return checked(connection, Slot::kClientCreate, *args, step);
  }));
  std::unique_ptr<Client> client(new Client(connection, args->client));
  TRY(client->platform_, client_text(connection, args->client, Slot::kClientPlatformName));
  TRY(client->version_, client_text(connection, args->client, Slot::kClientPlatformVersion));
  TRY_VOID(client->read_devices());
  return client;
}

Client::~Client() {
  auto args = make_args<abi::ClientDestroyArgs>();
  args.client = client_;
  release(connection_, Slot::kClientDestroy, args);
}

Result<void> Client::read_devices() {
  const Step step = {Stage::kStart, "listing the devices"};
  auto all = make_args<abi::ClientDevicesArgs>();
  all.client = client_;
  TRY_VOID(checked(connection_, Slot::kClientDevices, all, step));
  auto local = make_args<abi::ClientDevicesArgs>();
  local.client = client_;
  TRY_VOID(checked(connection_, Slot::kClientAddressableDevices, local, step));
  const std::span mine(local.devices, local.num_devices);
  for (abi::Device* handle : std::span(all.devices, all.num_devices)) {
    auto description = make_args<abi::DeviceGetDescriptionArgs>();
    description.device = handle;
    TRY_VOID(checked(connection_, Slot::kDeviceGetDescription, description, step));
    const auto device = describe_device(*connection_.api, description.description);
    if (!device) return std::unexpected(runtime_error(step, device.error()));
    devices_.push_back({handle, device->id, device->has_coordinates, device->at,
                        std::ranges::find(mine, handle) != mine.end()});
  }
  return {};
}

const Client::Device* Client::find(int id) const {
  const auto it = std::ranges::find(devices_, id, &Device::id);
  return it == devices_.end() ? nullptr : &*it;
}

const Client::Device* Client::find(const abi::Device* handle) const {
  const auto it = std::ranges::find(devices_, handle, &Device::handle);
  return it == devices_.end() ? nullptr : &*it;
}

Result<void> Client::check_slice(const chips::Slice& slice) const {
  if (platform_ != "tpu") {
    return machine_error("the plugin runs on platform '{}', not on tpu: give libtpu by --libtpu",
                         platform_);
  }
  if (static_cast<int>(devices_.size()) != slice.cores()) {
    return machine_error(
        "libtpu sees {} cores, {} has {}: the environment says which part of the slice a process "
        "takes (docs/tpu.md, Which devices)",
        devices_.size(), slice.name(), slice.cores());
  }
  for (int id = 0; id < slice.cores(); ++id) {
    const Device* device = find(id);
    if (device == nullptr) {
      return machine_error("libtpu has no device {}: a program compiled for {} cannot run here", id,
                           slice.name());
    }
    if (!device->has_coordinates)
      return machine_error("device {} has no coordinates: it is no TPU core", id);
    if (device->at != slice.coordinates(id)) {
      return machine_error("device {} is at {}, a program compiled for {} expects it at {}", id,
                           place(device->at), slice.name(), place(slice.coordinates(id)));
    }
  }
  return {};
}

Result<void> Client::check_transfers() {
  const OperandSpec spec = {.shape = {8, 128}, .dtype = "i32", .space = Space::kHbm};
  std::vector<uint32_t> sent(8 * 128), back(sent.size());
  for (const Device& device : devices_) {
    if (!device.local) continue;
    for (size_t i = 0; i < sent.size(); ++i)
      sent[i] = static_cast<uint32_t>(i * 2654435761u) ^ static_cast<uint32_t>(device.id);
    const Step step = {Stage::kUpload,
                       fmt::format("a test copy to device {} at {}", device.id, place(device.at))};
    TRY(Upload started, upload(device, spec, std::as_bytes(std::span(sent)), step));
    TRY(const Buffer buffer, started.finish(step));
    TRY_VOID(buffer.read(std::as_writable_bytes(std::span(back)), step));
    if (back != sent) {
      return machine_error(
          "device {} at {} gives back other bytes than were copied to it: it is faulty, or libtpu "
          "lays arrays out in another way than this program expects",
          device.id, place(device.at));
    }
  }
  return {};
}

Result<Upload> Client::upload(const Device& device, const OperandSpec& spec,
                              std::span<const std::byte> data, const Step& step) {
  auto args = make_args<abi::BufferFromHostArgs>();
  TRY(args.type, element_type(spec.dtype));
  args.client = client_;
  args.data = data.data();
  args.dims = spec.shape.data();
  args.num_dims = spec.shape.size();
  args.device = device.handle;
  DeviceLayout layout;
  abi::MemoryLayout asked;
  if (!spec.device_layout.empty()) {
    TRY(layout, DeviceLayout::parse(spec.device_layout));
    asked = layout.asked();
    args.device_layout = &asked;
  }
  TRY_VOID(checked(connection_, Slot::kClientBufferFromHostBuffer, args, step));
  return Upload(Buffer(connection_, args.buffer), Event(connection_, args.done_with_host_buffer));
}

}  // namespace gridless::tpu
