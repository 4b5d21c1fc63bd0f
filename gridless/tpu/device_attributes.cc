#include "gridless/tpu/device_attributes.h"

#include <string_view>

namespace gridless::tpu {

std::expected<DescribedDevice, PluginError> describe_device(const abi::Api& api,
                                                            abi::DeviceDescription* description) {
  auto id = make_args<abi::DeviceDescriptionIdArgs>();
  id.description = description;
  TRY_VOID(try_call(api, abi::Slot::kDeviceDescriptionId, id));
  auto attributes = make_args<abi::DeviceDescriptionAttributesArgs>();
  attributes.description = description;
  TRY_VOID(try_call(api, abi::Slot::kDeviceDescriptionAttributes, attributes));
  DescribedDevice device{.id = id.id};
  for (size_t k = 0; k < attributes.num_attributes; ++k) {
    const abi::NamedValue& value = attributes.attributes[k];
    const std::string_view name(value.name, value.name_size);
    if (name == "coords" && value.type == abi::NamedValue::kInt64List && value.value_size >= 3) {
      device.has_coordinates = true;
      device.at.x = static_cast<int>(value.int64_list[0]);
      device.at.y = static_cast<int>(value.int64_list[1]);
      device.at.z = static_cast<int>(value.int64_list[2]);
    } else if (name == "core_on_chip" && value.type == abi::NamedValue::kInt64) {
      device.at.core = static_cast<int>(value.int64_value);
    }
  }
  return device;
}

}  // namespace gridless::tpu
