// Where a device sits, as a plugin describes it.
#pragma once

#include "gridless/base/error.h"
#include "gridless/chips/slice.h"
#include "gridless/tpu/pjrt_call.h"

namespace gridless::tpu {

struct DescribedDevice {
  int id = 0;
  bool has_coordinates = false;  // a CPU or GPU plugin gives none
  chips::DeviceCoordinates at;
};

std::expected<DescribedDevice, PluginError> describe_device(const abi::Api& api,
                                                            abi::DeviceDescription* description);

}  // namespace gridless::tpu
