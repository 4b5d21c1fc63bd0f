#include "gridless/tpu/runtime/client.h"

#include <algorithm>

#include "gridless/tpu/device_attributes.h"
#include "gridless/tpu/runtime/element_type.h"
#include "gridless/tpu/runtime/runtime_error.h"

namespace gridless::tpu {
namespace {

using abi::Slot;

Result<std::string> client_text(const abi::Api& api, abi::Client* client, Slot slot) {
  auto args = make_args<abi::ClientTextArgs>();
  args.client = client;
  TRY_VOID(checked(api, slot, args, "asking the TPU client who it is"));
  return std::string(args.text, args.text_size);
}

std::string place(const chips::DeviceCoordinates& at) {
  return fmt::format("({}, {}, {}) core {}", at.x, at.y, at.z, at.core);
}

}  // namespace

Upload::~Upload() {
  // The plugin may still be reading the host's memory; an error is for whoever asked to finish.
  if (auto done = host_.wait("an upload"); !done) return;
}

Result<Buffer> Upload::finish(std::string_view what) {
  TRY_VOID(host_.wait(what));
  TRY_VOID(buffer_.wait(what));
  return std::move(buffer_);
}

Result<std::unique_ptr<Client>> Client::create(const std::string& plugin_path) {
  TRY(const abi::Api* api, load_plugin(plugin_path));
  auto args = make_args<abi::ClientCreateArgs>();
  TRY_VOID(checked(*api, Slot::kClientCreate, args, "starting the TPU client"));
  std::unique_ptr<Client> client(new Client(api, args.client));
  TRY(client->platform_, client_text(*api, args.client, Slot::kClientPlatformName));
  TRY(client->version_, client_text(*api, args.client, Slot::kClientPlatformVersion));
  TRY_VOID(client->read_devices());
  return client;
}

Client::~Client() {
  auto args = make_args<abi::ClientDestroyArgs>();
  args.client = client_;
  if (auto done = try_call(*api_, Slot::kClientDestroy, args); !done) return;
}

Result<void> Client::read_devices() {
  constexpr std::string_view kWhat = "listing the devices";
  auto all = make_args<abi::ClientDevicesArgs>();
  all.client = client_;
  TRY_VOID(checked(*api_, Slot::kClientDevices, all, kWhat));
  auto local = make_args<abi::ClientDevicesArgs>();
  local.client = client_;
  TRY_VOID(checked(*api_, Slot::kClientAddressableDevices, local, kWhat));
  const std::span mine(local.devices, local.num_devices);
  for (abi::Device* handle : std::span(all.devices, all.num_devices)) {
    auto description = make_args<abi::DeviceGetDescriptionArgs>();
    description.device = handle;
    TRY_VOID(checked(*api_, Slot::kDeviceGetDescription, description, kWhat));
    const auto device = describe_device(*api_, description.description);
    if (!device) return std::unexpected(runtime_error(kWhat, device.error()));
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

Result<Upload> Client::upload(const Device& device, const OperandSpec& spec,
                              std::span<const std::byte> data, std::string_view what) const {
  auto args = make_args<abi::BufferFromHostArgs>();
  TRY(args.type, element_type(spec.dtype));
  args.client = client_;
  args.data = data.data();
  args.dims = spec.shape.data();
  args.num_dims = spec.shape.size();
  args.device = device.handle;
  TRY_VOID(checked(*api_, Slot::kClientBufferFromHostBuffer, args, what));
  return Upload(Buffer(api_, args.buffer), Event(api_, args.done_with_host_buffer));
}

}  // namespace gridless::tpu
