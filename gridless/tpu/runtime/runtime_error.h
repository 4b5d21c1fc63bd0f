// How the runtime reports a PJRT call that failed: which step of the way, the status, the plugin's
// text, and what to do about it where that is known.
#pragma once

#include <string_view>

#include "gridless/base/error.h"
#include "gridless/tpu/pjrt_call.h"

namespace gridless::tpu {

// `what` is the step, as a noun: "starting the TPU client", "launch 12".
Error runtime_error(std::string_view what, const PluginError& error);

// A call whose failure is such an error.
template <typename Args>
Result<void> checked(const abi::Api& api, abi::Slot slot, Args& args, std::string_view what) {
  auto done = try_call(api, slot, args);
  if (!done) return std::unexpected(runtime_error(what, done.error()));
  return {};
}

}  // namespace gridless::tpu
